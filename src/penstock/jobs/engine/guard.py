"""In workers: report errors that come back every time to the driver, and hide them from Spark.

Spark retries a task that raises, perhaps elsewhere, which only helps with transient errors.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
from msgspec import Struct, structs

from penstock.errors import FunctionFailed, PenstockError
from penstock.jobs.engine.attempt import PASSING

# A guarded task yields nothing, or one `TaskFailed`.
SCHEMA = "error string, detail string, is_function boolean"


class Stopped(Exception):
    """The job was stopped."""

    # What a batch that was begun has until then: places of rows, and their values.
    partial: Any = None


class TaskFailed(Struct, frozen=True):
    """Why the work of a task cannot be done."""

    error: str
    detail: str
    # The function failed, and the error says it all.
    is_function: bool


def find_failure(work: Callable[[], None]) -> TaskFailed | None:
    """Do the work; returns a permanent failure, and raises transient errors."""
    try:
        work()
    except Stopped:
        return None
    except PASSING:
        raise
    except PenstockError as error:
        return TaskFailed(error.message, error.detail, isinstance(error, FunctionFailed))
    return None


def guard(work: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """Do the work, and report a permanent failure to the driver."""
    failed = find_failure(work)
    if failed is not None:
        row = structs.asdict(failed)
        yield pa.record_batch([[value] for value in row.values()], list(row))
