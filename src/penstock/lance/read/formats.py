"""Write rows in other forms than Arrow: as JSON to look at, as CSV and Parquet to take away.

JSON is bounded: so many rows, and about so many bytes, each cell cut. CSV and Parquet have it all,
and what CSV has no word for is JSON in a field. Everything blocks.
"""

import base64
import io
from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pyarrow.types as t

from penstock.errors import InvalidRequest
from penstock.lance.read.cells import kind_of, show_cell, show_column
from penstock.lance.write.layout import convert_batch, to_values_schema

MAX_ROWS, MAX_BYTES = 1_000, 4_194_304
# How many rows are made into text at once.
STEP_ROWS = 64

_encode = msgspec.json.Encoder(enc_hook=lambda value: _to_plain(value)).encode


class _CopyingFile(io.RawIOBase):
    """A file for writers that use their buffers again, over one that keeps what it is given."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        written: int = self._sink.write(bytes(data))
        return written

    def tell(self) -> int:
        at: int = self._sink.tell()
        return at

    def writable(self) -> bool:
        return True


def write_json(rows: "pa.RecordBatchReader | pa.Table", sink: Any) -> None:
    """Write the first rows as JSON, with cells to look at."""
    schema = to_values_schema(rows.schema)
    columns = [
        {"name": field.name, "type": str(field.type), "kind": kind_of(field)} for field in schema
    ]
    parts: list[bytes] = []
    size, is_complete = 0, True
    for batch in _in_steps(rows, schema):
        cells = [show_column(*pair) for pair in zip(schema, batch.columns, strict=True)]
        for number in range(batch.num_rows):
            row = _encode([column[number] for column in cells])
            if len(parts) == MAX_ROWS or (parts and size + len(row) > MAX_BYTES):
                is_complete = False
                break
            parts.append(row)
            size += len(row) + 1
        if not is_complete:
            break
    head, complete = _encode(columns), b"true" if is_complete else b"false"
    sink.write(b'{"columns":%b,"rows":[%b],"complete":%b}' % (head, b",".join(parts), complete))


def write_csv(rows: "pa.RecordBatchReader | pa.Table", sink: Any) -> None:
    """Write all rows as CSV, with a line of names."""
    schema = to_values_schema(rows.schema)
    shown = pa.schema([(field.name, _csv_type(field.type)) for field in schema])
    with csv.CSVWriter(_CopyingFile(sink), shown) as writer:
        for batch in _batches(rows, schema):
            columns = [
                column if column.type == field.type else _to_text(column)
                for column, field in zip(batch.columns, shown, strict=True)
            ]
            writer.write_batch(pa.record_batch(columns, schema=shown))


def write_parquet(rows: "pa.RecordBatchReader | pa.Table", sink: Any) -> None:
    """Write all rows as a Parquet file."""
    schema = to_values_schema(rows.schema)
    try:
        with pq.ParquetWriter(_CopyingFile(sink), schema) as writer:
            for batch in _batches(rows, schema):
                writer.write_batch(batch)
    except pa.ArrowNotImplementedError as error:
        raise InvalidRequest(
            f"Parquet cannot hold these columns: {error}", detail="select others, or take Arrow"
        ) from error


def _in_steps(
    rows: "pa.RecordBatchReader | pa.Table", schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    for batch in _batches(rows, schema):
        for start in range(0, batch.num_rows, STEP_ROWS):
            yield batch.slice(start, STEP_ROWS)


def _batches(
    rows: "pa.RecordBatchReader | pa.Table", schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
        yield convert_batch(batch, schema)


def _csv_type(kind: Any) -> Any:
    is_plain = (
        *(t.is_boolean, t.is_integer, t.is_floating, t.is_string, t.is_large_string),
        *(t.is_decimal, t.is_timestamp, t.is_date, t.is_time),
    )
    return kind if any(is_it(kind) for is_it in is_plain) else pa.string()


def _to_text(column: Any) -> Any:
    """Values that CSV has no word for, as JSON; bytes in base64."""
    return pa.array([_field_of(each) if each.is_valid else None for each in column], pa.string())


def _field_of(value: Any) -> str:
    try:
        found = value.as_py()
        if isinstance(found, str | bytes):
            return found if isinstance(found, str) else base64.b64encode(found).decode()
        return _encode(found).decode()
    except (TypeError, ValueError, OverflowError):
        return _encode(show_cell(value)).decode()


def _to_plain(value: Any) -> Any:
    return str(value)
