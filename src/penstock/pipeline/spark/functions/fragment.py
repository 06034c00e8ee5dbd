"""One fragment's values by a function: read, computed batch by batch, and kept in parts."""

import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.crash import crash_point
from penstock.datasets.column_files import Piece, Pieces
from penstock.datasets.notes import write_errors
from penstock.datasets.parts import FAILED, OFFSET, Part, find_parts, read_part, write_part
from penstock.datasets.samples import show_inputs
from penstock.datasets.scans import live_rows, offsets_of, read_row_ids, scan_rows
from penstock.errors import FunctionFailed
from penstock.model.functions import RowError
from penstock.pipeline.plan.backfill import FragmentWork
from penstock.pipeline.plan.masks import unpack
from penstock.pipeline.spark.functions.batches import cut, in_order
from penstock.pipeline.spark.functions.errors import Computed, RowFailed, Stopped
from penstock.pipeline.spark.functions.outcomes import Failure
from penstock.pipeline.spark.functions.task import FunctionTask

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

# Values that wait for a part are in memory.
MAX_WAITING_BYTES = 64 * 2**20
# Values are kept for a part from the time on at which the file would be finished too late, by this
# part of the interval.
SOON = 0.5
# Parts that are written early, for their size, may take so much of the time.
MAX_OVERHEAD = 0.04
MAX_ERRORS_A_FILE = 500
# A function that fails everywhere does so for the same reason.
FULL_ERRORS = 1000
MAX_PREVIEW = 500


class FragmentRun:
    """Computes a fragment; its pieces are asked for once."""

    def __init__(
        self,
        task: FunctionTask,
        dataset: "LanceDataset",
        fragment: "LanceFragment",
        work: FragmentWork,
    ) -> None:
        self._task = task
        self._dataset = dataset
        self._fragment = fragment
        self._work = work
        self._row_ids: Any = None
        self._errors: list[RowError] = []
        self._errors_told = 0
        # A row that ends the job is noted by the thread that computed it.
        self._noting = threading.RLock()
        self._waiting: list[tuple[Any, Any, pa.RecordBatch]] = []
        self._waiting_bytes = 0
        self._started = self._flushed = time.monotonic()
        self._writing_seconds = 0.0
        # Rows with new values, whoever computed them; rows that the function was given here.
        self.computed = 0
        self.calls = 0
        self.failed: list[int] = []

    def pieces(self) -> Iterator[Piece]:
        """The values of the rows that are to be computed, in order."""
        work = self._work
        need = unpack(work.need, work.physical_rows) if work.need is not None else None
        found = find_parts(self._task.place, self._task.job, work.id, work.key)
        try:
            yield from self._resume(found, need) if found else self._compute(need)
        except Stopped:
            # Nobody listens any more.
            self._errors = []
            raise
        finally:
            self._tell_errors()

    def _resume(self, found: list[Part], need: Any) -> Iterator[Piece]:
        """What earlier tries left, whatever they had themselves, and the rest."""
        import numpy as np

        live = live_rows(self._dataset, self._fragment)
        wanted = live if need is None else live & need
        # The part that each row is taken from.
        owners = np.full(len(wanted), -1, np.int32)
        for number, part in enumerate(found):
            held = self._offsets_in(part)
            owners[held[wanted[held] & (owners[held] < 0)]] = number
        sources = {-1: Pieces(self._compute(wanted & (owners < 0)))}
        rows = np.flatnonzero(wanted)
        runs = np.split(rows, np.flatnonzero(np.diff(owners[rows])) + 1)
        for run in runs if len(rows) else ():
            owner = int(owners[run[0]])
            if owner not in sources:
                sources[owner] = Pieces(self._take_part(found[owner], owners == owner))
            yield from sources[owner].below(int(run[-1]) + 1)
            if sources[owner].end is None:
                # Its values are not needed in memory any more.
                del sources[owner]

    def _offsets_in(self, part: Part) -> Any:
        """The rows that a part has; none when the columns have other types now."""
        rows = read_part(self._task.place, self._task.job, part)
        columns = rows.schema.remove(0).remove(0)
        return rows[OFFSET].to_numpy() if columns == self._task.kinds else []

    def _take_part(self, part: Part, wanted: Any) -> Iterator[Piece]:
        import pyarrow as pa

        table = read_part(self._task.place, self._task.job, part)
        for batch in table.filter(pa.array(wanted[table[OFFSET].to_numpy()])).to_batches():
            if batch.num_rows:
                offsets = batch.column(OFFSET).to_numpy()
                self.failed += offsets[batch.column(FAILED).to_numpy(zero_copy_only=False)].tolist()
                self.computed += batch.num_rows
                yield Piece(offsets, batch.select(self._task.kinds.names))

    def _compute(self, wanted: Any) -> Iterator[Piece]:
        task = self._task
        rows = scan_rows(self._dataset, self._fragment, task.function.inputs, wanted)
        batches = cut(rows, task.size)
        for batch, done in in_order(self._run, batches, task.knobs.threads):
            offsets = offsets_of(batch)
            task.size.learn(batch.num_rows, done.seconds, done.values.nbytes)
            self.calls += done.calls
            self.computed += batch.num_rows
            with self._noting:
                for row, (failure, tries) in done.failures.items():
                    self._note_error(batch, offsets, row, failure, tries)
            self._keep(offsets, done)
            task.beat(self._work.id, self.computed)
            yield Piece(offsets, done.values)

    def _run(self, batch: "pa.RecordBatch") -> Computed:
        try:
            return self._task.policy.compute(batch)
        except RowFailed as error:
            raise self._to_failure(batch, error) from error

    # Parts -----------------------------------------------------------------------------------

    def _keep(self, offsets: Any, done: Computed) -> None:
        """Remember values until they are worth a part."""
        import numpy as np

        if self._ends_soon():
            return
        failed = np.zeros(len(offsets), bool)
        failed[list(done.failures)] = True
        self._waiting.append((offsets, failed, done.values))
        self._waiting_bytes += done.values.nbytes
        now = time.monotonic()
        if now - self._flushed >= self._task.knobs.flush_seconds:
            self._flush()
        elif self._waiting_bytes > MAX_WAITING_BYTES:
            # So much in so little time: to compute it again may cost less than to keep it.
            if self._writing_seconds < MAX_OVERHEAD * (now - self._started):
                self._flush()
            else:
                self._forget()

    def _ends_soon(self) -> bool:
        """Whether the file will be finished before a part is due, going by the rows so far."""
        elapsed = time.monotonic() - self._started
        expected = elapsed * self._work.rows / max(1, self.computed)
        return expected < SOON * self._task.knobs.flush_seconds

    def _flush(self) -> None:
        import numpy as np

        started = time.monotonic()
        self._tell_errors()
        write_part(
            self._task.place,
            self._task.job,
            self._work.id,
            self._work.key,
            self._task.attempt,
            np.concatenate([offsets for offsets, _, _ in self._waiting]),
            np.concatenate([failed for _, failed, _ in self._waiting]),
            [values for _, _, values in self._waiting],
        )
        crash_point("part written")
        self._forget()
        self._flushed = time.monotonic()
        self._writing_seconds += self._flushed - started

    def _forget(self) -> None:
        self._waiting = []
        self._waiting_bytes = 0

    # Errors ----------------------------------------------------------------------------------

    def _to_failure(self, batch: "pa.RecordBatch", error: RowFailed) -> FunctionFailed:
        """Note the row that ends the job, so that the driver need not wait for other tasks."""
        function, offsets = self._task.function, offsets_of(batch)
        offset = int(offsets[error.row])
        # That others failed too is no news of this row.
        told = error.note if error.failure.is_rate_limit else ""
        with self._noting:
            self._note_error(batch, offsets, error.row, error.failure, error.tries, told)
            for row, (failure, tries) in error.others.items():
                self._note_error(batch, offsets, row, failure, tries)
            self._tell_errors()
        where = f"row id {self._row_id(offset)} (fragment {self._work.id}, offset {offset})"
        note = f" ({error.note})" if error.note else ""
        return FunctionFailed(
            f"function {function.name} (version {function.version}) failed at {where}: "
            f"{error.failure.text}{note}",
            detail=error.failure.traceback,
        )

    def _note_error(
        self,
        batch: "pa.RecordBatch",
        offsets: Any,
        row: int,
        failure: Failure,
        tries: int,
        note: str = "",
    ) -> None:
        offset = int(offsets[row])
        self.failed.append(offset)
        names = self._task.function.inputs
        values = [batch.column(number)[row].as_py() for number in range(len(names))]
        is_full = self._errors_told + len(self._errors) < FULL_ERRORS
        self._errors.append(
            RowError(
                row_id=self._row_id(offset),
                fragment=self._work.id,
                offset=offset,
                inputs=show_inputs(names, values)[:MAX_PREVIEW],
                exception=failure.exception,
                message=f"{failure.message} ({note})" if note else failure.message,
                traceback=failure.traceback if is_full else "",
                tries=tries,
                at=time.time_ns() // 1_000_000,
            )
        )
        if len(self._errors) >= MAX_ERRORS_A_FILE:
            self._tell_errors()

    def _tell_errors(self) -> None:
        with self._noting:
            if self._errors:
                write_errors(self._task.place, self._task.job, self._errors)
                self._errors_told += len(self._errors)
                self._errors = []

    def _row_id(self, offset: int) -> int:
        if self._row_ids is None:
            self._row_ids = read_row_ids(self._dataset, self._fragment)
        return int(self._row_ids[offset])
