"""Iceberg tables for Spark SQL: the rows of one metadata file, read by Python workers.

Spark's JVM never opens them, so the gate before SQL stays as it is. What is below `_read` runs in
Python workers.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from msgspec import Struct, json

from penstock.iceberg.doors import table_reading
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import cast_in, to_spark_schema
from penstock.lance.columns.schemas import decode_schema


class IcebergScan(Struct, frozen=True):
    """A state of a table as Spark reads it."""

    file: str
    folders: tuple[str, ...]
    options: dict[str, str]
    # Base64 of the Arrow schema of the columns to read, of which there is at least one.
    schema: str
    # Only what these snapshots appended; None is everything.
    snapshots: tuple[int, ...] | None = None


def load_iceberg(engine: Engine, scan: IcebergScan) -> Any:
    """The table as a frame; raises when its files are not what can be read."""
    count = min(engine.slots, _open(scan).count) or 1
    kernel = partial(_read, json.encode(scan), count)
    schema = to_spark_schema(decode_schema(scan.schema))
    return engine.spark.range(0, count, 1, count).mapInArrow(kernel, schema)


def _open(scan: IcebergScan) -> "table_reading.StateReader":
    return table_reading.StateReader(scan.file, scan.folders, scan.options, scan.snapshots)


def _read(
    encoded: bytes, count: int, numbers: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    scan = json.decode(encoded, type=IcebergScan)
    schema = decode_schema(scan.schema)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for found in _open(scan).read(schema.names, number, count):
                columns = [_cast(found.column(field.name), field.type) for field in schema]
                yield cast_in(pa.record_batch(columns, schema=schema))


def _cast(column: Any, kind: pa.DataType) -> Any:
    plain = column.storage if isinstance(column, pa.ExtensionArray) else column
    return plain.cast(kind)
