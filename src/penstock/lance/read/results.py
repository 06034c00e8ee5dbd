"""Write query results as an Arrow IPC file."""

from collections.abc import Callable, Iterable
from itertools import chain, islice
from typing import Any

from penstock.lance.doors import layout, pa

# Writes rows into a file that grows.
Write = Callable[["pa.RecordBatchReader | pa.Table", Any], None]
# A result up to this size is assembled before it is handed on.
SMALL_BYTES = 2**18


def write_file(rows: "pa.RecordBatchReader | pa.Table", sink: Any) -> None:
    """Write rows as they come; writes nothing before the first rows are there."""
    # Lance has a dictionary per fragment, an Arrow file only one: write plain values.
    schema = layout.to_values_schema(rows.schema)
    if isinstance(rows, pa.Table):
        return _write_at_once(rows.to_batches(), schema, sink)
    batches = iter(rows)
    first = list(islice(batches, 2))
    if len(first) < 2 and sum(batch.nbytes for batch in first) <= SMALL_BYTES:
        return _write_at_once(first, schema, sink)
    return _write(chain(first, batches), schema, sink)


def _write_at_once(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema", sink: Any) -> None:
    """Write through a buffer: Arrow writes in small pieces, each of which would take the GIL."""
    out = pa.BufferOutputStream()
    _write(batches, schema, out)
    sink.write(out.getvalue())


def _write(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema", sink: Any) -> None:
    # Closed only at the end of the rows: an interrupted result must not look complete.
    writer = pa.ipc.new_file(sink, schema)
    for batch in batches:
        writer.write_batch(layout.convert_batch(batch, schema))
    writer.close()
