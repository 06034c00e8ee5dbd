"""Limits that a function's process sets for itself: memory, and ending with its parent."""

import contextlib
import ctypes
import resource
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1


def limit_memory(size: int) -> None:
    """Allow this process so many more bytes than now; beyond that Python raises MemoryError."""
    # Of data, not of addresses: libraries reserve far more of those than they use.
    used = _data_bytes()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = used + size
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def be_first_to_die() -> None:
    """When the machine runs out of memory, the kernel should kill this process, not its worker."""
    # Not on every system, and not allowed everywhere.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def end_with_parent() -> None:
    """Be killed when the worker ends, whatever is running here."""
    # Only Linux has it.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _data_bytes() -> int:
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:")), 0)
