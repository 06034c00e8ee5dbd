"""Rows in answers, as Arrow: all at once, or while they arrive."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.errors import InvalidRequest
from penstock.sdk.connection.answer_stream import AnswerStream
from penstock.sdk.connection.wire import Wire
from penstock.sdk.rows.doors import pa

if TYPE_CHECKING:
    import pyarrow

# An Arrow file is a stream after these, and ends with places that a stream has no use for.
MAGIC = b"ARROW1\0\0"


def ask_rows(wire: Wire, path: str, body: object, timeout: float | None = None) -> "pyarrow.Table":
    """The rows that answer a request."""
    # First, because nothing is asked without it.
    ipc = pa.ipc
    return ipc.open_file(pa.BufferReader(wire.read_bytes(path, body, timeout))).read_all()


def ask_batches(
    wire: Wire, path: str, body: object, batch_rows: int | None = None
) -> "pyarrow.RecordBatchReader":
    """The rows that answer a request, while they arrive; in batches of so many at most."""
    if batch_rows is not None and batch_rows < 1:
        raise InvalidRequest(f"batch_size is {batch_rows}", detail="give 1 or more")
    ipc = pa.ipc
    answer = wire.read_stream(path, body)
    try:
        if answer.read(len(MAGIC)) != MAGIC:
            raise InvalidRequest(
                f"{wire.url} does not answer with rows", detail="is it a Penstock server?"
            )
        opened = ipc.open_stream(answer)
    except BaseException:
        answer.close()
        raise
    return pa.RecordBatchReader.from_batches(opened.schema, _take(opened, answer, batch_rows))


def _take(
    opened: "pyarrow.RecordBatchReader", answer: AnswerStream, batch_rows: int | None
) -> "Iterator[pyarrow.RecordBatch]":
    try:
        for batch in opened:
            step = batch_rows or max(batch.num_rows, 1)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)
    finally:
        answer.close()
