"""Capture what functions print, separately for each thread and bounded."""

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

from penstock.jobs.functions.redaction import hide

MAX_LINES, MAX_BYTES = 200, 16_384
# For all files of one task together.
MAX_TOTAL_LINES = 2_000

# Of a context, so that calls in an event loop have that of the batch that they are of.
_current: ContextVar["_Lines | None"] = ContextVar("_current", default=None)
_installing = threading.Lock()


class PrintedOutput:
    """Lines that were printed and not taken yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: list[str] = []
        self._size = 0
        self._cut = 0
        self._total = 0

    def add(self, line: str) -> None:
        with self._lock:
            size = len(line.encode(errors="replace"))
            if (
                len(self._lines) >= MAX_LINES
                or self._size + size > MAX_BYTES
                or self._total >= MAX_TOTAL_LINES
            ):
                self._cut += 1
                return
            self._lines.append(line)
            self._size += size
            self._total += 1

    def take(self) -> list[str]:
        """The lines since the last time; a last one says how many were left out."""
        with self._lock:
            lines, cut = self._lines, self._cut
            self._lines, self._size, self._cut = [], 0, 0
        return [*lines, f"({cut} more lines were printed)"] if cut else lines


@contextlib.contextmanager
def captured(output: PrintedOutput | None) -> Iterator[None]:
    """Inside, what is printed here goes to the output."""
    if output is None:
        yield
        return
    _install()
    target = _Lines(output)
    before = _current.set(target)
    try:
        yield
    finally:
        target.end()
        _current.reset(before)


class _Lines:
    """Text that becomes lines."""

    def __init__(self, output: PrintedOutput) -> None:
        self._output = output
        self._rest = ""

    def write(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._output.add(hide(line))
        if len(self._rest) > MAX_BYTES:
            self.end()

    def end(self) -> None:
        if self._rest:
            self._output.add(hide(self._rest)[:MAX_BYTES])
            self._rest = ""


class _Stream(io.TextIOBase):
    """Stands in for `sys.stdout`: prints of a function are captured, others pass."""

    def __init__(self, original: TextIO) -> None:
        self.original = original

    def write(self, text: str) -> int:
        target = _current.get()
        if target is None:
            # Of a thread of the function's own, or of no function.
            self.original.write(hide(text))
            return len(text)
        target.write(text)
        return len(text)

    def flush(self) -> None:
        self.original.flush()

    def fileno(self) -> int:
        return self.original.fileno()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"


def _install() -> None:
    with _installing:
        if not isinstance(sys.stdout, _Stream):
            sys.stdout = _Stream(sys.stdout)
        if not isinstance(sys.stderr, _Stream):
            sys.stderr = _Stream(sys.stderr)
