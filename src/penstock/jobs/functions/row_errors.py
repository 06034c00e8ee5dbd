"""Record the rows that a function failed on, for the ledger and to end the job."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from penstock.errors import FunctionFailed
from penstock.jobs.engine.worker_notes import write_errors
from penstock.jobs.functions.errors import RowFailed
from penstock.jobs.functions.outcomes import Failure
from penstock.jobs.functions.task import FunctionTask
from penstock.model.functions import RowError

MAX_ERRORS_A_FILE = 500
# A function that fails everywhere does so for the same reason.
FULL_ERRORS = 1000
MAX_PREVIEW = 500


class FailedRow(NamedTuple):
    """A row that failed: what it is called, and what the function was given."""

    row_id: int
    fragment: int
    offset: int
    text: str
    inputs: str


class RowErrors:
    """The failed rows of one run; its threads share it."""

    def __init__(
        self, task: FunctionTask, find: Callable[[pa.RecordBatch, int], FailedRow]
    ) -> None:
        self._task = task
        self._find = find
        self._errors: list[RowError] = []
        self._told = 0
        # A row that ends the job is noted by the thread that computed it.
        self._lock = threading.RLock()

    def add(
        self, batch: pa.RecordBatch, failures: Mapping[int, tuple[Failure, int]], note: str = ""
    ) -> None:
        """Note rows of a batch, with how many times each was tried."""
        with self._lock:
            for row, (failure, tries) in failures.items():
                self._add(self._find(batch, row), failure, tries, note)

    def tell(self) -> None:
        """Hand over what was noted since the last time."""
        with self._lock:
            if self._errors:
                write_errors(self._task.place, self._task.job, self._errors)
                self._told += len(self._errors)
                self._errors = []

    def forget(self) -> None:
        """Nobody listens any more."""
        with self._lock:
            self._errors = []

    def to_failure(self, batch: pa.RecordBatch, error: RowFailed) -> FunctionFailed:
        """Note the row that ends the job, so that the driver need not wait for other tasks."""
        # That others failed too is no news of this row.
        told = error.note if error.failure.is_rate_limit else ""
        with self._lock:
            self.add(batch, {error.row: (error.failure, error.tries)}, told)
            self.add(batch, error.others)
            self.tell()
        function = self._task.function
        note = f" ({error.note})" if error.note else ""
        return FunctionFailed(
            f"function {function.name} (version {function.version}) failed at "
            f"{self._find(batch, error.row).text}: {error.failure.text}{note}",
            detail=error.failure.traceback,
        )

    def _add(self, where: FailedRow, failure: Failure, tries: int, note: str) -> None:
        outputs = self._task.function.outputs
        is_full = self._told + len(self._errors) < FULL_ERRORS
        self._errors.append(
            RowError(
                row_id=where.row_id,
                fragment=where.fragment,
                offset=where.offset,
                inputs=where.inputs[:MAX_PREVIEW],
                exception=failure.exception,
                message=f"{failure.message} ({note})" if note else failure.message,
                traceback=failure.traceback if is_full else "",
                tries=tries,
                at=time.time_ns() // 1_000_000,
                column=outputs[0].column if outputs else "",
            )
        )
        if len(self._errors) >= MAX_ERRORS_A_FILE:
            self.tell()
