"""What happens at calls of functions in this process: something is done, or the process dies.

A process that is to die is told so by its environment.
"""

import os
import signal
import threading
from collections.abc import Callable

DIES_AT = "PENSTOCK_SOAK_DIES_AT"

_lock = threading.Lock()
_counts: dict[str, int] = {}
_plans: dict[str, dict[int, Callable[[], None]]] = {}


def called(log: str) -> None:
    """Do what is planned for this call of the function with this log."""
    with _lock:
        number = _counts[log] = _counts.get(log, 0) + 1
        planned = _plans.get(log, {}).pop(number, None)
    if number == int(os.environ.get(DIES_AT, 0)):
        os.kill(os.getpid(), signal.SIGKILL)
    if planned is not None:
        planned()


def plan(log: str, actions: dict[int, Callable[[], None]]) -> None:
    """Do these at the calls from now on, counted from 1; what was planned before is forgotten."""
    with _lock:
        _counts[log] = 0
        _plans[log] = dict(actions)
