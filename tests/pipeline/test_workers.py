"""How Spark reaches its Python workers."""

import os
from collections.abc import Iterator

import pyarrow as pa

from penstock.pipeline.spark.engine import Engine, Tasks


def show_sockets(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in numbers:
        yield pa.record_batch([[os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "")]], ["is_unix"])


def test_workers_are_reached_without_tcp(engine: Engine) -> None:
    (row,) = Tasks(engine, show_sockets, 1, "is_unix string").result()
    assert row.is_unix.lower() == "true"
