"""Screen Arrow streams before decoding: how much memory each batch asks for.

A compressed buffer states its uncompressed size in its first eight bytes, and a batch its row
count, however few bytes came. Both are read from the message itself, so that too large ones are
refused before anything is allocated. Arrow checks the rest of a message.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from penstock.errors import InvalidRequest, RequestTooLarge
from penstock.lance.doors import np, pa, pc

MAX_BATCH_BYTES = 2**28
# Limits of what a message says about itself, such as the place of each buffer, or a schema.
MAX_METADATA_BYTES = 2**24
# Rows without size, such as nulls, can be any number: allow this many, besides one per bit.
FREE_ROWS = 65_536
CONTINUES = 0xFFFF_FFFF
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
Bytes = bytes | memoryview


class ReadableFile(Protocol):
    """A file that is read once, from start to end."""

    closed: bool

    def read(self, size: int = -1) -> Bytes: ...


class ScreenedStream:
    """A stream as a file for Arrow; each message is checked before it is passed on."""

    def __init__(self, source: ReadableFile, max_bytes: int) -> None:
        self._messages = _messages(source, max_bytes)
        self._parts: list[memoryview] = []
        self.closed = False

    def read(self, size: int = -1) -> Bytes:
        """Read so many bytes, fewer at the end; Arrow asks for one message, part by part."""
        found: list[memoryview] = []
        while size:
            if not self._parts:
                parts, _ = next(self._messages, ((), 0))
                self._parts = [memoryview(part) for part in parts if len(part)]
                if not self._parts:
                    break
            part = self._parts[0]
            taken = part if size < 0 else part[:size]
            found.append(taken)
            size -= len(taken) if size > 0 else 0
            self._parts[0] = part[len(taken) :]
            if not len(self._parts[0]):
                del self._parts[0]
        return found[0] if len(found) == 1 else b"".join(found)

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


class _MemoryFile:
    """Bytes as such a file, without copies."""

    closed = False

    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)

    def read(self, size: int = -1) -> Bytes:
        taken = self._rest if size < 0 else self._rest[:size]
        self._rest = self._rest[len(taken) :]
        return taken


def screen_whole(content: bytes, max_bytes: int) -> None:
    """Check all messages of a stream that is in memory; its batches count together."""
    left = max_bytes
    for _, size in _messages(_MemoryFile(content), max_bytes):
        left -= size
        if left < 0:
            raise RequestTooLarge(
                f"the rows of a body of {len(content)} bytes take more than {max_bytes} bytes",
                detail="send them in several requests; server.max_batch_bytes is the limit",
            )


def check_expanded(batch: "pa.RecordBatch", max_bytes: int) -> None:
    """Refuse rows that are few bytes as dictionaries or views, but many when written out."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        kind: Any = column.type
        if pa.types.is_dictionary(kind):
            sizes = _lengths(column.dictionary)
            size = 0 if sizes is None else pc.sum(sizes.take(column.indices)).as_py() or 0
        elif pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
            size = _sum_of_views(column)
        else:
            continue
        if size > max_bytes:
            raise RequestTooLarge(
                f"column {name!r} takes {size} bytes when it is written out, more than {max_bytes}",
                detail="send fewer rows in a batch; server.max_batch_bytes is the limit",
            )


def _sum_of_views(column: Any) -> int:
    """The total length of all values of views: each is four numbers, the first is its length."""
    views = np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset :]
    return int(views[: 4 * len(column) : 4].astype(np.int64).sum())


def _lengths(values: Any) -> Any:
    try:
        return pc.binary_length(values)
    except pa.ArrowNotImplementedError:
        return None


def _messages(source: ReadableFile, max_bytes: int) -> Iterator[tuple[Sequence[Bytes], int]]:
    """The messages of a stream (prefix, metadata, body), and the unpacked size of each."""
    while True:
        start = _exactly(source, 4)
        if len(start) < 4:
            # Arrow raises its own error for this.
            yield (start,), 0
            return
        (size,) = struct.unpack("<I", start)
        prefix: Bytes = start
        if size == CONTINUES:
            more = _exactly(source, 4)
            prefix = bytes(start) + bytes(more)
            if len(more) < 4:
                yield (prefix,), 0
                return
            (size,) = struct.unpack("<I", more)
        if size == 0:
            yield (prefix,), 0
            return
        if size > MAX_METADATA_BYTES:
            raise _unsound(f"a message has {size} bytes of metadata")
        metadata = _exactly(source, size)
        if len(metadata) < size:
            yield (prefix, metadata), 0
            return
        length = _body_length(metadata)
        body = _exactly(source, length)
        taken = _check(metadata, body, max_bytes) if len(body) == length else 0
        yield (prefix, metadata, body), taken


def _exactly(source: ReadableFile, size: int) -> Bytes:
    return source.read(size) if size else b""


def _check(metadata: Bytes, body: Bytes, max_bytes: int) -> int:
    size = _measure(metadata, body)
    # Uncompressed buffers are in memory already.
    if size > max(max_bytes, len(body)):
        raise RequestTooLarge(
            f"a batch of {len(body)} bytes would take {size} bytes, more than {max_bytes}",
            detail="send fewer rows in a batch; server.max_batch_bytes is the limit",
        )
    return size


def _measure(metadata: Bytes, body: Bytes) -> int:
    """How many bytes a message's buffers take; raises when its rows can't be in them."""
    try:
        batch = _find_batch(metadata)
        return 0 if batch is None else _measure_batch(metadata, batch, body)
    except (struct.error, IndexError) as error:
        raise _unsound(f"a message's metadata can't be read ({error})") from error


def _measure_batch(metadata: Bytes, batch: int, body: Bytes) -> int:
    is_compressed = _field(metadata, batch, 3) is not None
    total = 0
    for offset, length in _structs(metadata, batch, 2):
        if length < 0 or offset < 0 or offset + length > len(body):
            raise _unsound("a buffer is outside its message")
        if is_compressed and length >= 8:
            (size,) = struct.unpack_from("<q", body, offset)
            # -1 marks a buffer that was left uncompressed.
            length = length - 8 if size == -1 else size
            if length < 0:
                raise _unsound("a compressed buffer has no size")
        total += length
    at = _field(metadata, batch, 0)
    rows = 0 if at is None else struct.unpack_from("<q", metadata, at)[0]
    most = max([rows, *(count for count, _ in _structs(metadata, batch, 1))])
    if most > 8 * total + FREE_ROWS:
        raise _unsound(f"a batch says that it has {most} rows or items, in {total} bytes")
    return total


def _body_length(metadata: Bytes) -> int:
    try:
        at = _field(metadata, _root(metadata), 3)
        length: int = 0 if at is None else struct.unpack_from("<q", metadata, at)[0]
    except struct.error as error:
        raise _unsound(f"a message's metadata can't be read ({error})") from error
    if length < 0:
        raise _unsound(f"a message has {length} bytes")
    return length


def _find_batch(metadata: Bytes) -> int | None:
    """Where the table of a record batch is, or of the one inside a dictionary's message."""
    root = _root(metadata)
    kind, header = _field(metadata, root, 1), _field(metadata, root, 2)
    if kind is None or header is None or metadata[kind] not in (DICTIONARY, BATCH):
        return None
    batch = _follow(metadata, header)
    if metadata[kind] == DICTIONARY:
        inner = _field(metadata, batch, 1)
        return None if inner is None else _follow(metadata, inner)
    return batch


# From here on: reading flatbuffers. A table has a table of its fields' places; a field is there
# itself, or as the distance to a vector or another table.


def _root(data: Bytes) -> int:
    return _follow(data, 0)


def _follow(data: Bytes, at: int) -> int:
    distance: int = struct.unpack_from("<I", data, at)[0]
    return at + distance


def _field(data: Bytes, table: int, number: int) -> int | None:
    places = table - struct.unpack_from("<i", data, table)[0]
    if places < 0:
        raise struct.error("a table is outside")
    (size,) = struct.unpack_from("<H", data, places)
    if 4 + 2 * number + 2 > size:
        return None
    (distance,) = struct.unpack_from("<H", data, places + 4 + 2 * number)
    return table + distance if distance else None


def _structs(data: Bytes, table: int, number: int) -> Iterator[tuple[int, int]]:
    """A vector of pairs of numbers."""
    at = _field(data, table, number)
    if at is None:
        return
    start = _follow(data, at)
    (count,) = struct.unpack_from("<I", data, start)
    if start + 4 + 16 * count > len(data):
        raise struct.error("a vector is outside")
    yield from struct.iter_unpack("<qq", data[start + 4 : start + 4 + 16 * count])


def _unsound(reason: str) -> InvalidRequest:
    return InvalidRequest(
        f"the body is not a sound Arrow IPC stream: {reason}",
        detail="send a complete stream as application/vnd.apache.arrow.stream",
    )
