"""How long to wait until the next try: pauses that grow, and random ones.

Only numbers: who waits, in a thread, in a loop or for an event that may come first, what is tried
again and what becomes of the last error is the caller's.
"""

import random
from collections.abc import Iterator


class Growing:
    """Pauses that grow by a factor from the first to the longest one."""

    def __init__(self, first: float, longest: float, factor: float = 2.0) -> None:
        self._first, self._longest, self._factor = first, longest, factor
        self._next = first

    @property
    def is_first(self) -> bool:
        """Whether none was taken yet, or none since the reset."""
        return self._next == self._first

    def take(self) -> float:
        """The pause to make now."""
        pause = self._next
        self._next = min(self._longest, pause * self._factor)
        return pause

    def reset(self) -> None:
        """Begin with the first again."""
        self._next = self._first


def spread(seconds: float, count: int) -> Iterator[float]:
    """So many pauses for those who want the same thing: random, up to a step longer each time."""
    for number in range(1, count + 1):
        yield random.uniform(0, seconds * number)
