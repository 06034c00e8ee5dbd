"""Backoff: how long to wait before the next try, growing or random.

Only numbers: the caller decides how to wait, what to try again, and what to do with the last error.
"""

import random
from collections.abc import Iterator


class Backoff:
    """Pauses that grow by a factor, from the first to the longest."""

    def __init__(self, first: float, longest: float, factor: float = 2.0) -> None:
        self._first, self._longest, self._factor = first, longest, factor
        self._next = first

    @property
    def is_first(self) -> bool:
        """Whether no pause was taken yet, or none since the reset."""
        return self._next == self._first

    def take(self) -> float:
        """The next pause."""
        pause = self._next
        self._next = min(self._longest, pause * self._factor)
        return pause

    def reset(self) -> None:
        """Start with the first pause again."""
        self._next = self._first


def spread(seconds: float, count: int) -> Iterator[float]:
    """Random pauses for competitors, each up to a step longer than the one before."""
    for number in range(1, count + 1):
        yield random.uniform(0, seconds * number)
