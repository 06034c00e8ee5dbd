"""How Spark's Python workers are reached, and what they keep from one task to the next."""

import os
from collections.abc import Iterator

import pyarrow as pa

from penstock.jobs.spark.tasks import Engine, Tasks

MAX_TASKS = 20


def count_frozen(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import gc

    for _ in numbers:
        yield pa.record_batch([[os.getpid()], [gc.get_freeze_count()]], ["pid", "frozen"])


def test_what_a_worker_has_loaded_is_no_garbage_in_its_later_tasks(engine: Engine) -> None:
    found: dict[int, int] = {}
    for _ in range(MAX_TASKS):
        (row,) = Tasks(engine, count_frozen, 1, "pid bigint, frozen bigint").result()
        if row.pid in found:
            assert row.frozen > 10_000
            return
        found[row.pid] = row.frozen
    raise AssertionError(f"no worker of {len(found)} was used twice")


def show_sockets(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in numbers:
        yield pa.record_batch([[os.environ.get("PYTHON_UNIX_DOMAIN_ENABLED", "")]], ["is_unix"])


def test_workers_are_reached_without_tcp(engine: Engine) -> None:
    (row,) = Tasks(engine, show_sockets, 1, "is_unix string").result()
    assert row.is_unix.lower() == "true"
