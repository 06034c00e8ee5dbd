"""A progress bar on stderr: redrawn on a terminal, a line now and then anywhere else."""

import sys
import time

WIDTH = 24


class Progress:
    """One phase of a run with a known number of steps."""

    def __init__(self, phase: str, total: int) -> None:
        self._phase, self._total, self._done = phase, total, 0
        self._started = time.monotonic()
        self._draw("")

    def step(self, note: str) -> None:
        """Count one step as done, and say what it was."""
        self._done += 1
        self._draw(note)

    def _draw(self, note: str) -> None:
        filled = WIDTH * self._done // self._total
        bar = "#" * filled + "." * (WIDTH - filled)
        seconds = time.monotonic() - self._started
        line = (
            f"{self._phase:<15} [{bar}] {self._done:>2}/{self._total:<2} {seconds:>4.0f} s  {note}"
        )
        is_last = self._done == self._total
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{line}" + ("\n" if is_last else ""))
        elif is_last or self._done % max(1, self._total // 10) == 0:
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
