"""One fragment's values by a function: read, computed batch by batch, and kept in parts."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock.datasets.column_files import Piece, Pieces
from penstock.datasets.parts import FAILED, OFFSET, Part, find_parts, read_part
from penstock.datasets.samples import show_inputs
from penstock.datasets.scans import live_rows, offsets_of, read_row_ids, scan_rows
from penstock.pipeline.plan.backfill import FragmentWork
from penstock.pipeline.plan.masks import unpack
from penstock.pipeline.spark.functions.batches import cut, in_order
from penstock.pipeline.spark.functions.errors import Computed, RowFailed, Stopped
from penstock.pipeline.spark.functions.keeping import Keeper
from penstock.pipeline.spark.functions.noting import RowErrors, Where
from penstock.pipeline.spark.functions.task import FunctionTask

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
    ) -> None:
        self._task = task
        self._dataset = dataset
        self._fragment = fragment
        self._work = work
        self._row_ids: Any = None
        self._errors = RowErrors(task, self._find)
        self._keeper = Keeper(task, work.id, work.key, work.rows, self._errors.tell)
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
            self._errors.forget()
            raise
        finally:
            self._errors.tell()

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
        if self._row_ids is None:
            self._row_ids = read_row_ids(self._dataset, self._fragment)
        return int(self._row_ids[offset])
