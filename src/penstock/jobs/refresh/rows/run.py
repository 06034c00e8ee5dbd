"""Compute the rows of a query over one source on Spark, and write them into files of the view."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np
from lance import LanceDataset

from penstock.jobs.engine.finished import NewRows, failed_rows, rate_of
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.row_ranges import NeededRows
from penstock.jobs.refresh.context import Plan, SourceVersions, ViewChange, Work
from penstock.jobs.refresh.rows import spark_rows
from penstock.jobs.refresh.rows.kernel import RowsOrder, Unit, rows_kernel
from penstock.jobs.refresh.rows.plan import AllRows, SomeRows, limit_rows
from penstock.jobs.refresh.tasks import make_missing, open_engine, to_knobs
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.diff.masks import Mask, pack
from penstock.lance.diff.row_diff import find_taken
from penstock.lance.diff.row_sets import Ids, is_among, split_runs
from penstock.lance.diff.row_sets import RowPlaces as Places
from penstock.model.views import Rows

# The most source rows of a unit, so that a killed job loses little.
UNIT_ROWS = 1_048_576
# Fewer are not worth a task of their own.
MIN_UNIT_ROWS = 8_192


def run(work: Work, plan: Plan) -> ViewChange:
    """Compute what the plan says, and find the view rows to remove."""
    (source,) = work.sources.values()
    rows = work.definition.rows
    assert rows is not None
    assert isinstance(plan.work, AllRows | SomeRows)
    what: AllRows | SomeRows = plan.work
    computing = _Computation(work, source, rows)
    if isinstance(what, SomeRows) and what.same.any():
        # Rows that still match the filter, and did not change otherwise, stay as they are.
        what = what.without(computing.match(what.rows.take(what.same)).ids)
    if rows.limit is not None:
        what = limit_rows(work, source, what, rows.limit, computing.match)
    needed = find_needed(source.dataset_now, what)
    done = computing.compute(needed) if needed else []
    written, inserted = sum(each.rows for each in done), sum(each.inserted for each in done)
    updated = written - inserted
    removes: Ids | Literal["all"] = "all"
    gone = work.view.count_rows()
    if isinstance(what, SomeRows):
        removes, gone = what.gone.ids, len(what.gone.ids)
    functions = len(work.definition.column_functions)
    return ViewChange(
        removes=removes,
        fragments=tuple(fragment for each in done for fragment in each.fragments),
        rows_inserted=inserted,
        rows_updated=updated,
        rows_deleted=gone - updated,
        function_calls=sum(each.calls for each in done),
        calls_of_all=functions * (work.view.count_rows() - gone + written) if functions else None,
        rows_read=sum(each.rows for each in needed),
        failed=failed_rows(done),
        rate=rate_of(done),
    )


def match_rows(work: Work, source: SourceVersions, rows: Places, query: Rows) -> Places:
    """Those of some rows of a version that match the filter of a query."""
    return _Computation(work, source, query).match(rows)


def find_needed(dataset: LanceDataset, what: AllRows | SomeRows) -> list[NeededRows]:
    """The source rows to compute, by fragment."""
    sizes = {each.fragment_id: each.physical_rows for each in dataset.get_fragments()}
    if isinstance(what, SomeRows):
        return _by_fragment(what.rows, sizes, what.was, what.kept)
    if what.rows is not None:
        return _by_fragment(what.rows, sizes, None, ())
    return [
        NeededRows(fragment=id, physical_rows=size, start=0, end=size, rows=rows)
        for fragment in dataset.get_fragments()
        for id, size in [(fragment.fragment_id, fragment.physical_rows)]
        if (rows := size - fragment.num_deletions)
    ]


def _by_fragment(
    rows: Places, sizes: Mapping[int, int], was: Mask | None, kept: tuple[Mask, ...]
) -> list[NeededRows]:
    found = []
    order = np.argsort(rows.fragments, kind="stable")
    for run in split_runs(rows.fragments[order]):
        mine = order[run]
        id, offsets = int(rows.fragments[mine[0]]), rows.offsets[mine]
        size = sizes[id]
        start, end = int(offsets.min()), int(offsets.max()) + 1

        def show(
            which: Mask | None, mine: Any = mine, start: int = start, end: int = end
        ) -> bytes | None:
            if which is None or not which[mine].any():
                return None
            mask = np.zeros(end - start, bool)
            mask[rows.offsets[mine[which[mine]]] - start] = True
            return pack(mask)

        need = None if len(mine) == size else show(np.ones(len(rows.ids), bool))
        found.append(
            NeededRows(
                fragment=id,
                physical_rows=size,
                start=start,
                end=end,
                rows=len(mine),
                need=need,
                was=show(was),
                kept=tuple(show(each) for each in kept),
            )
        )
    return found


def make_units(needed: Sequence[NeededRows], slots: int, size: int | None) -> list[Unit]:
    """Divide rows into units: the same number per slot, or of a requested size."""
    total = sum(each.rows for each in needed)
    most = max(1, total // MIN_UNIT_ROWS)
    count = min(most, -(-total // UNIT_ROWS // slots) * slots)
    limit = size or -(-total // count)
    units: list[list[NeededRows]] = []
    room = 0
    for part in (part for each in needed for part in _cut(each, limit)):
        if not units or part.rows > room:
            units.append([])
            # A slightly larger unit is better than another one.
            room = limit + limit // 10
        units[-1].append(part)
        room -= part.rows
    return [Unit(_key(unit), tuple(unit)) for unit in units]


def make_tasks(units: Sequence[Unit], count: int) -> tuple[tuple[Unit, ...], ...]:
    """Distribute units evenly."""
    tasks: list[list[Unit]] = [[] for _ in range(min(count, len(units)))]
    for unit in sorted(units, key=lambda unit: -unit.rows):
        min(tasks, key=lambda task: sum(each.rows for each in task)).append(unit)
    return tuple(tuple(task) for task in tasks)


def _cut(needed: NeededRows, limit: int) -> Iterator[NeededRows]:
    """The rows of a fragment in parts of at most so many."""
    return needed.divide(_find_cuts(needed, limit))


def _find_cuts(needed: NeededRows, limit: int) -> Iterator[tuple[int, int, int]]:
    need = needed.mask(needed.need)
    if need is not None:
        offsets = np.flatnonzero(need)
        for at in range(0, len(offsets), limit):
            part = offsets[at : at + limit]
            yield int(part[0]), int(part[-1]) + 1, len(part)
        return
    # Where deleted rows are is not known here, and hardly matters.
    width = -(-needed.physical_rows // -(-needed.rows // limit))
    for start in range(0, needed.physical_rows, width):
        end = min(start + width, needed.physical_rows)
        yield start, end, needed.rows * (end - start) // needed.physical_rows


def _key(unit: Sequence[NeededRows]) -> str:
    return hashlib.sha256(msgspec.json.encode(unit)).hexdigest()[:16]


class _Computation:
    """Units in progress, and those that earlier attempts finished."""

    def __init__(self, work: Work, source: SourceVersions, rows: Rows) -> None:
        self._work = work
        self._source = source
        self._rows = rows

    def compute(self, needed: Sequence[NeededRows]) -> list[NewRows]:
        """Compute the rows on Spark, except for finished units."""
        spec, engine = self._work.spec, self._work.get_engine()
        slots = max(1, min(engine.slots, spec.concurrency or engine.slots))
        units = make_units(needed, slots, spec.source_task_size)
        keys, sizes = [unit.key for unit in units], [unit.rows for unit in units]

        def start(numbers: Sequence[int], engine: Engine) -> Tasks:
            return self._start(engine, [units[number] for number in numbers], slots)

        functions = self._work.definition.column_functions
        with open_engine(self._work, sum(sizes)) as opened:
            return make_missing(opened, functions, keys, sizes, start)

    def match(self, rows: Places) -> Places:
        """Those of some rows that match the filter."""
        where = self._rows.filter
        if where is None or not len(rows.ids):
            return rows
        if self._rows.engine == "lance":
            return rows.take(find_taken(self._source.dataset_now, rows, where))
        needed = find_needed(self._source.dataset_now, AllRows(rows))
        units = make_units(needed, self._work.get_engine().slots, None)
        order = self._order(tuple((unit,) for unit in units))
        with open_engine(self._work, len(rows.ids)) as opened:
            found = spark_rows.match(opened.get_engine(), order, self._source, self._work)
        return rows.take(is_among(rows.ids, found))

    def _start(self, engine: Engine, units: Sequence[Unit], slots: int) -> Tasks:
        if self._rows.engine == "lance":
            order = self._order(make_tasks(units, slots))
            return Tasks(engine, rows_kernel(order), len(order.tasks), SCHEMA)
        # Rows that come back from the JVM do not name their unit.
        order = self._order(tuple((unit,) for unit in units))
        return spark_rows.start(engine, order, self._source.dataset_now, self._source.source)

    def _order(self, tasks: tuple[tuple[Unit, ...], ...]) -> RowsOrder:
        work = self._work
        return RowsOrder(
            job=work.attempt.job,
            attempt=work.attempt.number,
            source=self._source.location,
            source_version=self._source.now,
            view=work.location,
            view_version=work.view.version,
            rows=self._rows,
            columns=tuple(decode_schema(work.definition.schema).names),
            functions=work.definition.column_functions,
            tasks=tasks,
            max_rows=work.spec.max_rows_per_fragment,
            knobs=to_knobs(work.spec),
        )
