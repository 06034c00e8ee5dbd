"""A worker's ends of the pipes to its function's process, with waits that can be interrupted.

A process that is gone need not have closed its ends: its own children may hold them.
"""

import os
import select
from collections.abc import Callable
from typing import BinaryIO

LOOK_SECONDS = 0.1


class ReadingEnd:
    """Reads; `look` is called while nothing comes, and may raise."""

    def __init__(self, pipe: BinaryIO, look: Callable[[], None]) -> None:
        self._pipe = pipe.fileno()
        self._look = look

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer at the end of the pipe."""
        found = bytearray(size)
        at = 0
        while at < size:
            while not select.select([self._pipe], [], [], LOOK_SECONDS)[0]:
                self._look()
            count = os.readv(self._pipe, [memoryview(found)[at:]])
            if not count:
                break
            at += count
        return bytes(memoryview(found)[:at])


class WritingEnd:
    """Writes; `look` is called while nothing is taken, and may raise."""

    def __init__(self, pipe: BinaryIO, look: Callable[[], None]) -> None:
        self._pipe = pipe.fileno()
        self._look = look
        os.set_blocking(self._pipe, False)

    def write(self, content: "bytes | memoryview") -> None:
        left = memoryview(content)
        while left:
            while not select.select([], [self._pipe], [], LOOK_SECONDS)[1]:
                self._look()
            left = left[os.write(self._pipe, left) :]

    def flush(self) -> None: ...


def is_readable(pipe: BinaryIO) -> bool:
    """Whether something, or the end, is to be read at once."""
    return bool(select.select([pipe], [], [], 0)[0])


def make_pipe() -> tuple[BinaryIO, BinaryIO]:
    """A pipe's ends, for reading and for writing; without buffers."""
    reading, writing = os.pipe()
    return os.fdopen(reading, "rb", 0), os.fdopen(writing, "wb", 0)
