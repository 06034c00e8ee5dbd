"""Tasks of a view's own function on Spark: their errors kept from it, and heard by the driver."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import structs

from penstock.errors import FunctionFailed, PenstockError, Unavailable
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.engine.worker_reports import Heard
from penstock.jobs.functions.errors import Stopped
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.rows.kernel import TaskFailed
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.model.functions import Function

if TYPE_CHECKING:
    import pyarrow as pa


class Outcome:
    """In a worker: what became of a task, as a row for the driver."""

    def __init__(self) -> None:
        self._failed: TaskFailed | None = None

    @contextlib.contextmanager
    def watch(self) -> Iterator[None]:
        """Inside, an error that would come back every time is kept from Spark."""
        try:
            yield
        except Stopped:
            return
        except Unavailable:
            # Spark tries the task again, perhaps elsewhere.
            raise
        except PenstockError as error:
            is_function = isinstance(error, FunctionFailed)
            self._failed = TaskFailed(error.message, error.detail, is_function)

    def rows(self) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        if self._failed is not None:
            row = structs.asdict(self._failed)
            yield pa.record_batch([[value] for value in row.values()], list(row))


def run_tasks(work: Work, function: Function, rows: int, start: Callable[[Engine], Tasks]) -> None:
    """Run tasks that give rows to the function to their end; raises what made one fail."""
    heard = Heard(work.location, (function,), work.attempt)
    heard.failures.expect(rows)
    work.attempt.progress(rows_total=rows)

    def listen() -> bool:
        heard.listen()
        moved = heard.listen_inside()
        if moved:
            done, failed = heard.rows_inside(()), heard.failures.rows
            work.attempt.progress(rows_done=done, rows_failed=failed)
        heard.failures.check()
        return moved

    wait_for(work, start(work.get_engine()), listen)
