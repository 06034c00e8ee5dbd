"""One fragment's values by a function: read, computed batch by batch, and kept in parts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import FunctionFailed
from penstock.jobs.backfill.plan import FragmentWork
from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.batches import cut, in_order
from penstock.jobs.functions.errors import Computed, RowFailed
from penstock.jobs.functions.noting import RowErrors, Where
from penstock.jobs.functions.task import FunctionTask
from penstock.jobs.kept.carrier import Carrier, Known, wanted_rows
from penstock.jobs.kept.unwritten import Keeper
from penstock.lance.diff.masks import unpack
from penstock.lance.read.samples import show_inputs
from penstock.lance.read.scans import offsets_of, read_row_ids, scan_rows
from penstock.lance.write.column_files import Piece

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment


class FragmentRun:
    """Computes a fragment; its pieces are asked for once."""

    def __init__(
        self,
        task: FunctionTask,
        dataset: "LanceDataset",
        fragment: "LanceFragment",
        work: FragmentWork,
        carrier: Carrier,
        *,
        can_read_file: bool = True,
    ) -> None:
        self._task = task
        self._carrier = carrier
        self._can_read_file = can_read_file
        self._dataset = dataset
        self._fragment = fragment
        self._work = work
        self._row_ids: Any = None
        self._errors = RowErrors(task, self._find)
        find_ids = self._find_ids if dataset.has_stable_row_ids else None
        self._keeper = Keeper(task, work.id, work.key, work.rows, self._errors.tell, find_ids)
        self._carried = 0
        # Rows with new values, whoever computed them; rows that the function was given here.
        self.computed = 0
        self.calls = 0
        self.failed: list[int] = []

    def pieces(self) -> Iterator[Piece]:
        """The values of the rows that are to be computed, in order."""
        work = self._work
        try:
            known = self._carrier.find(self._dataset, self._fragment, work)
            if known is not None and known.mask.any():
                yield from self._resume(known)
            else:
                need = unpack(work.need, work.physical_rows) if work.need is not None else None
                yield from self._compute(need)
            if not self._can_read_file:
                # What a later job could not read in the file it finds here.
                self._keeper.flush()
        except Stopped:
            # Nobody listens any more, but the next job has use for what was finished.
            self._keeper.flush()
            self._errors.forget()
            raise
        except FunctionFailed:
            self._keeper.flush()
            raise
        finally:
            self._errors.tell()

    def _resume(self, known: Known) -> Iterator[Piece]:
        """What is known, and the rest."""
        wanted = wanted_rows(self._dataset, self._fragment, self._work)
        computed = self._compute(wanted & ~known.mask)
        try:
            for piece in known.merge(wanted, computed, self._compute):
                self.computed += known.rows - self._carried
                self._carried = known.rows
                yield piece
        finally:
            self.failed += known.failed

    def _compute(self, wanted: Any) -> Iterator[Piece]:
        task = self._task
        rows = scan_rows(self._dataset, self._fragment, task.function.inputs, wanted)
        batches = cut(rows, task.size)
        for batch, done in in_order(self._run, batches, task.knobs.threads):
            offsets = offsets_of(batch)
            task.size.learn(batch.num_rows, done.seconds, done.values.nbytes)
            self.calls += done.calls
            self.computed += batch.num_rows
            self.failed += offsets[list(done.failures)].tolist()
            self._errors.add(batch, done.failures)
            self._keeper.keep(offsets, done, self.computed)
            task.beat(self._work.id, self.computed)
            yield Piece(offsets, done.values)

    def _run(self, batch: "pa.RecordBatch") -> Computed:
        try:
            return self._task.policy.compute(batch)
        except RowFailed as error:
            raise self._errors.to_failure(batch, error) from error

    def _find(self, batch: "pa.RecordBatch", row: int) -> Where:
        offset = int(offsets_of(batch)[row])
        names = self._task.function.inputs
        values = [batch.column(number)[row].as_py() for number in range(len(names))]
        id, fragment = self._row_id(offset), self._work.id
        text = f"row id {id} (fragment {fragment}, offset {offset})"
        return Where(id, fragment, offset, text, show_inputs(names, values))

    def _row_id(self, offset: int) -> int:
        return int(self._find_ids(offset))

    def _find_ids(self, offsets: Any) -> Any:
        if self._row_ids is None:
            self._row_ids = read_row_ids(self._dataset, self._fragment).astype("int64")
        return self._row_ids[offsets]
