"""Rows that were found, as an Arrow IPC file."""

from collections.abc import Iterable
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

# A result up to this size is put together before it is handed on.
SMALL_BYTES = 2**18


def write_file(rows: "pa.RecordBatchReader | pa.Table", sink: Any) -> None:
    """Write rows as they come, a table at once; nothing before the first rows are there."""
    import pyarrow as pa

    from penstock.lance.write.layout import to_values_schema

    # Lance has a dictionary per fragment, an Arrow file one in all: the values go out plain.
    schema = to_values_schema(rows.schema)
    if isinstance(rows, pa.Table):
        return _write_at_once(rows.to_batches(), schema, sink)
    batches = iter(rows)
    first = list(islice(batches, 2))
    if len(first) < 2 and sum(batch.nbytes for batch in first) <= SMALL_BYTES:
        return _write_at_once(first, schema, sink)
    return _write(chain(first, batches), schema, sink)


def _write_at_once(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema", sink: Any) -> None:
    """Arrow writes in small pieces, and each into the sink would wait for Python's lock."""
    import pyarrow as pa

    out = pa.BufferOutputStream()
    _write(batches, schema, out)
    sink.write(out.getvalue())


def _write(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema", sink: Any) -> None:
    import pyarrow as pa

    from penstock.lance.write.layout import convert_batch

    # Closed only at the end of the rows: a result that broke off must not look complete.
    writer = pa.ipc.new_file(sink, schema)
    for batch in batches:
        writer.write_batch(convert_batch(batch, schema))
    writer.close()
