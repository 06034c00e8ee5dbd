"""Rows as an Arrow stream in the body of a request."""

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from penstock.sdk.connection.wire import Body
from penstock.sdk.rows.doors import pa
from penstock.sdk.rows.reading import Rows

if TYPE_CHECKING:
    import pyarrow

# What is kept of rows that can be read once, for a server that is busy at first.
KEPT_BYTES = 32 * 1024 * 1024


def to_body(rows: Rows) -> Body:
    """The rows as a body, which can be sent again if they can be read again, or are few."""
    if rows.is_repeatable:
        return Body(lambda: _stream(rows.schema, rows.batches()))
    return _KeptBody(_stream(rows.schema, rows.batches()))


class _KeptBody(Body):
    """A body that is made once: sent again as long as all of it so far is kept."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        super().__init__(self._parts)
        self._left = parts
        self._kept: list[bytes] = []
        self._size = 0

    def _parts(self) -> Iterator[bytes]:
        yield from list(self._kept)
        for part in self._left:
            self._size += len(part)
            if self._size <= KEPT_BYTES:
                self._kept.append(part)
            else:
                self._kept.clear()
                self.can_repeat = False
            yield part
        self.is_sent = True


def _stream(schema: "pyarrow.Schema", batches: "Iterable[pyarrow.RecordBatch]") -> Iterator[bytes]:
    """An Arrow IPC stream, piece by piece."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield _take(sink)
    # The end of the stream, and the schema if there are no rows.
    yield _take(sink)


def _take(sink: io.BytesIO) -> bytes:
    content = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return content
