"""Fill a column on Spark: each task goes through its fragments and writes a file for each.

The functions below `fill_kernel` run in Python workers, which need penstock installed.
"""

import time
import uuid
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, json

from penstock.datasets.checkpoints import Checkpoint, is_stopped, write_checkpoint
from penstock.datasets.remote import Location, open_version
from penstock.datasets.replacement import Computation, write_column_file
from penstock.errors import PenstockError, Unavailable
from penstock.pipeline.plan.backfill import FragmentWork, file_name
from penstock.pipeline.spark.engine import Kernel

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "fragment bigint, error string"


class FillOrder(Struct, frozen=True):
    """All that workers need to know; it travels to them in the function itself."""

    job: str
    attempt: int
    uri: str
    branch: str
    options: Mapping[str, str]
    version: int
    what: Computation
    tasks: tuple[tuple[FragmentWork, ...], ...]


class FragmentFailed(Struct, frozen=True):
    """A fragment whose values cannot be computed, and why."""

    fragment: int
    error: str


def fill_kernel(order: FillOrder) -> Kernel:
    """What Spark runs in each worker; yields a row for each fragment that failed."""
    return partial(_fill, json.encode(order))


def _fill(encoded: bytes, numbers: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa

    order = json.decode(encoded, type=FillOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            failed = _fill_fragments(order, order.tasks[number])
            if failed is not None:
                yield pa.record_batch([[failed.fragment], [failed.error]], ["fragment", "error"])


def _fill_fragments(order: FillOrder, work: tuple[FragmentWork, ...]) -> FragmentFailed | None:
    location = Location(order.uri, order.branch, order.options)
    place = location.place()
    for each in work:
        if is_stopped(place, order.job, order.attempt):
            return None
        started = time.perf_counter()
        name = file_name(each.key, order.job, order.attempt, uuid.uuid4().hex[:8])
        try:
            dataset = open_version(location, order.version, order.job)
            file, computed = write_column_file(dataset, location, each.id, order.what, name)
        except Unavailable:
            # Spark tries the task again, perhaps elsewhere.
            raise
        except PenstockError as error:
            # An error of the values comes back every time, so Spark must not hear of it.
            return FragmentFailed(each.id, error.message)
        seconds = round(time.perf_counter() - started, 4)
        note = Checkpoint(each, file, computed, order.attempt, seconds)
        write_checkpoint(place, order.job, note)
    return None
