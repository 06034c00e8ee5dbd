"""Waiting in tests: as long as a busy machine may need, and no longer than it takes."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


def until(
    look: Callable[[], T | None],
    complaint: str = "it never came",
    seconds: float = PATIENCE_SECONDS,
) -> T:
    """Look again and again until there is something; returns it."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)
    return found
