"""In a worker: what makes a task fail every time is told to the driver, and kept from Spark.

Spark tries a task again that raises, perhaps elsewhere. That is right for what may pass, and only
for that.
"""

from collections.abc import Callable, Iterator

import pyarrow as pa
from msgspec import Struct, structs

from penstock.errors import FunctionFailed, PenstockError
from penstock.jobs.engine.attempt import PASSING

# What a guarded task yields: nothing, or one `TaskFailed`.
SCHEMA = "error string, detail string, is_function boolean"


class Stopped(Exception):
    """The job was stopped."""


class TaskFailed(Struct, frozen=True):
    """Why the work of a task cannot be done."""

    error: str
    detail: str
    # The function failed, and the error says it all.
    is_function: bool


def find_failure(work: Callable[[], None]) -> TaskFailed | None:
    """Do the work; returns what makes it fail every time, and raises what may pass."""
    try:
        work()
    except Stopped:
        return None
    except PASSING:
        raise
    except PenstockError as error:
        return TaskFailed(error.message, error.detail, isinstance(error, FunctionFailed))
    return None


def guard(work: Callable[[], None]) -> "Iterator[pa.RecordBatch]":
    """Do the work, and tell the driver what makes it fail."""
    failed = find_failure(work)
    if failed is not None:
        row = structs.asdict(failed)
        yield pa.record_batch([[value] for value in row.values()], list(row))
