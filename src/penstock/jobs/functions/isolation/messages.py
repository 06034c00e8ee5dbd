"""Messages between a worker and its function's process: JSON and Arrow in frames."""

import struct
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct

from penstock.jobs.functions.outcomes import Failure
from penstock.model.functions import Function

_SIZES = struct.Struct("<QQ")
# In place of a request: cancel what runs, and tell of the rows that have values.
STOP = b"stop"


class Setup(Struct, frozen=True):
    """The function; its stored bytes follow."""

    function: Function
    schema: bytes


class Ready(Struct, frozen=True):
    """The function is loaded, or why it is not."""

    kind: str = ""
    is_async: bool = False
    error: str = ""
    detail: str = ""
    printed: tuple[str, ...] = ()


class Request(Struct, frozen=True):
    """Call the function on the batch that follows."""

    go_on: bool
    # Of an async function: so that a row that ends the process is known.
    one_by_one: bool = False


class Reply(Struct, frozen=True):
    """What came of it; the values follow, if there are any."""

    failures: dict[int, Failure]
    whole: Failure | None
    printed: tuple[str, ...]
    left: tuple[int, ...] = ()
    is_stopped: bool = False


class ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


class ByteSink(Protocol):
    def write(self, content: Any, /) -> object: ...

    def flush(self) -> None: ...


def send(pipe: ByteSink, head: bytes, body: bytes | pa.Buffer = b"") -> None:
    pipe.write(_SIZES.pack(len(head), len(body)))
    pipe.write(head)
    pipe.write(body)
    pipe.flush()


def receive(pipe: ByteSource) -> tuple[bytes, bytes] | None:
    """The next frame; None when the other side is gone."""
    sizes = pipe.read(_SIZES.size)
    if len(sizes) < _SIZES.size:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    head, body = pipe.read(head_size), pipe.read(body_size)
    if len(head) + len(body) < head_size + body_size:
        return None
    return head, body


def encode_batch(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decode_batch(content: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
        return reader.read_next_batch()
