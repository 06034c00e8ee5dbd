"""One fragment's values by a function: those that are kept, and those that are computed."""

from collections.abc import Iterator
from typing import Any

from lance import LanceDataset, LanceFragment

from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.needed_rows import ROW_ID
from penstock.jobs.functions.rows import RowsRun
from penstock.jobs.functions.task import FunctionTask
from penstock.jobs.kept.fragments import FragmentFinder, KeptRows, wanted_rows
from penstock.lance.diff.masks import unpack
from penstock.lance.read.scans import offsets_of, scan_rows
from penstock.lance.write.column_files import ValuePiece


class FragmentRun:
    """Computes a fragment; its pieces are asked for once.

    With `keep_all` every value is kept, because nobody could read it in the file.
    """

    def __init__(
        self,
        task: FunctionTask,
        dataset: LanceDataset,
        fragment: LanceFragment,
        work: FragmentWork,
        finder: FragmentFinder,
        *,
        keep_all: bool = False,
    ) -> None:
        self._task = task
        self._dataset, self._fragment, self._work = dataset, fragment, work
        self._finder = finder
        self._keep_all = keep_all
        self._runs: list[RowsRun] = []
        self._kept: KeptRows | None = None
        self._failed: list[int] = []

    @property
    def computed(self) -> int:
        """Rows with new values, whoever computed them."""
        return sum(run.computed for run in self._runs) + (self._kept.rows if self._kept else 0)

    @property
    def calls(self) -> int:
        """Rows that the function was given here."""
        return sum(run.calls for run in self._runs)

    @property
    def rows_null(self) -> int:
        """Rows that are null because an input is."""
        return sum(run.rows_null for run in self._runs)

    @property
    def failed(self) -> list[int]:
        """The offsets of rows without a value."""
        return self._failed + (self._kept.failed if self._kept else [])

    def pieces(self) -> Iterator[ValuePiece]:
        """The values of the rows that are to be computed, in order."""
        work = self._work
        self._kept = kept = self._finder.find(self._dataset, self._fragment, work)
        if kept is not None:
            wanted = wanted_rows(self._dataset, self._fragment, work)
            yield from kept.merge(wanted, self._compute(wanted & ~kept.mask), self._compute)
        else:
            need = unpack(work.need, work.physical_rows) if work.need is not None else None
            yield from self._compute(need)

    def remove_parts(self) -> None:
        """Remove what was kept here: all of it is in a finished file."""
        for run in self._runs:
            run.keeper.remove()

    def _compute(self, wanted: Any) -> Iterator[ValuePiece]:
        inputs = self._task.function.inputs
        rows = scan_rows(self._dataset, self._fragment, inputs, wanted, with_row_id=True)
        run = RowsRun(
            self._task,
            rows,
            ROW_ID,
            unit=self._work.id,
            finders=(),
            input_columns=[str(number) for number in range(len(inputs))],
            keep_all=self._keep_all,
            count_done=lambda: self.computed,
        )
        self._runs.append(run)
        for found in run:
            offsets = offsets_of(found.batch)
            self._failed += offsets[found.failed].tolist()
            yield ValuePiece(offsets, found.values)
