"""Named points at which a test can kill the process, as a power cut would.

`PENSTOCK_CRASH_AT` names one of them; without it, each costs one string comparison.
"""

import os
import signal

VARIABLE = "PENSTOCK_CRASH_AT"
_AT = os.environ.get(VARIABLE, "")


def crash_point(name: str) -> None:
    """Die here if a test asked for it."""
    if name == _AT:
        os.kill(os.getpid(), signal.SIGKILL)
