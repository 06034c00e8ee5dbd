"""The messages of an Arrow file while it arrives: its head and the rows, without its footer."""

import struct
from collections.abc import AsyncIterator

from penstock.errors import Unavailable
from penstock.server.flight.messages import CONTINUATION

# An Arrow file begins with this, and goes on as a stream does.
MAGIC = b"ARROW1\x00\x00"
HEAD_BYTES = 8
# Where the table of a message tells of its field `bodyLength`.
BODY_LENGTH_SLOT = 10


async def read_messages(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[bytes, bytes]]:
    """Head and body of each message, the schema's first."""
    source = _Source(chunks)
    if await source.take(len(MAGIC)) != MAGIC:
        raise Unavailable("the result is no Arrow file", detail="ask again")
    while True:
        mark, length = struct.unpack("<4si", await source.take(HEAD_BYTES))
        if mark != CONTINUATION:
            raise Unavailable("the result is broken", detail="ask again")
        if length == 0:
            return
        header = await source.take(length)
        yield header, await source.take(_read_body_length(header))


def _read_body_length(header: bytes) -> int:
    """The length of what follows a message's head, which is a flatbuffer."""
    (table,) = struct.unpack_from("<I", header, 0)
    (back,) = struct.unpack_from("<i", header, table)
    slots = table - back
    (size,) = struct.unpack_from("<H", header, slots)
    if size <= BODY_LENGTH_SLOT:
        return 0
    (offset,) = struct.unpack_from("<H", header, slots + BODY_LENGTH_SLOT)
    return 0 if not offset else int(struct.unpack_from("<q", header, table + offset)[0])


class _Source:
    """Bytes that arrive in chunks, taken in pieces of other sizes."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._held: list[memoryview] = []
        self._size = 0

    async def take(self, length: int) -> bytes:
        while self._size < length:
            chunk = await anext(self._chunks, b"")
            if not chunk:
                raise Unavailable("the result ended too early", detail="ask again")
            self._held.append(memoryview(chunk))
            self._size += len(chunk)
        parts, wanted = [], length
        while wanted:
            first = self._held[0]
            parts.append(first[:wanted])
            wanted -= len(parts[-1])
            self._held[0] = first[len(parts[-1]) :]
            if not self._held[0]:
                self._held.pop(0)
        self._size -= length
        return b"".join(parts)
