"""Encode a statement's rows in Python workers, which need penstock installed.

A task stops as soon as it alone has more than the whole result may have, so that no answer takes
more memory than that for each task.
"""

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from msgspec import Struct, json

from penstock.errors import SchemaMismatch
from penstock.jobs.spark.tasks import Kernel
from penstock.jobs.spark.types import fit_column
from penstock.lance.columns.schemas import decode_schema

# Each row has a batch of the result as a message of an Arrow stream; one without content tells how
# much a task had when that was too much, or what was wrong with its values.
SCHEMA = "content binary, rows bigint, bytes bigint, error string"
KINDS = pa.schema(
    [
        ("content", pa.binary()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("error", pa.string()),
    ]
)


class EncodeOrder(Struct, frozen=True, array_like=True):
    """Everything that workers need; sent in the kernel's closure."""

    # Base64 of the result's Arrow schema.
    schema: str
    max_rows: int
    max_bytes: int


def encode_kernel(order: EncodeOrder) -> Kernel:
    """Runs in each worker; yields a row for each batch."""
    return partial(_encode, json.encode(order))


def _encode(encoded: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=EncodeOrder)
    wanted = decode_schema(order.schema)
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        try:
            columns = [
                fit_column(column, field)
                for column, field in zip(batch.columns, wanted, strict=True)
            ]
        except SchemaMismatch as error:
            # An error of the values comes back every time, so Spark must not retry it.
            yield _row(error=error.message)
            return
        content = pa.record_batch(columns, schema=wanted).serialize()
        rows, size = rows + batch.num_rows, size + content.size
        if rows > order.max_rows or size > order.max_bytes:
            yield _row(rows=rows, bytes=size)
            return
        yield _row(content.to_pybytes(), batch.num_rows, content.size)


def _row(
    content: bytes | None = None, rows: int = 0, bytes: int = 0, error: str | None = None
) -> pa.RecordBatch:
    return pa.record_batch([[content], [rows], [bytes], [error]], schema=KINDS)
