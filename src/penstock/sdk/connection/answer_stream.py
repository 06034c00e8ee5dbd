"""A large answer as a file that is read while it arrives."""

from collections.abc import Callable

import httpx

from penstock.errors import PenstockError, Unavailable
from penstock.model.codes import BROKEN_OFF

# The last bytes are not given out before it is known that they are no error: a server that breaks
# an answer off ends it with one.
HELD_BYTES = 65_536

ReadEnd = Callable[[httpx.Response, bytes], PenstockError]


class AnswerStream:
    """The bytes of an answer; reading raises what broke it off."""

    def __init__(self, answer: httpx.Response, read_end: ReadEnd) -> None:
        self._answer = answer
        self._read_end = read_end
        self._mark = answer.headers.get(BROKEN_OFF, "").encode()
        self._parts = answer.iter_bytes()
        self._buffer = bytearray()
        self._ended = False
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """So many bytes, fewer only at the end."""
        while not self._ended and (size < 0 or len(self._buffer) - HELD_BYTES < size):
            self._fill()
        ready = len(self._buffer) if self._ended else len(self._buffer) - HELD_BYTES
        count = ready if size < 0 else min(size, ready)
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def close(self) -> None:
        self.closed = True
        self._answer.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def _fill(self) -> None:
        try:
            part = next(self._parts, None)
        except httpx.TransportError as error:
            _, found, told = self._buffer.rpartition(self._mark) if self._mark else (b"", b"", b"")
            if found:
                raise self._read_end(self._answer, bytes(told)) from None
            raise Unavailable(
                f"the answer broke off: {error or type(error).__name__}",
                detail="ask again; who takes no rows for a minute is not waited for",
            ) from error
        if part is None:
            self._ended = True
        else:
            self._buffer += part
