"""Refuse pickles in the server and in the runner's driver.

A pickle is a program. Only Spark's Python workers, which are separate processes, may run one.
Python reports every name that a pickle asks for before it is looked up, whichever library reads it,
so we can refuse it here. A pickle without names is plain data and harmless.
"""

import sys
from pickle import UnpicklingError
from typing import Any


def refuse_pickles() -> None:
    """From now on, and for good, refuse every pickle in this process that names anything."""
    sys.addaudithook(_check)


def _check(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "pickle.find_class":
        # Imported by now: the event is pickle's own.

        raise UnpicklingError(f"a pickle asks for {arguments[0]}.{arguments[1]}: not read here")
