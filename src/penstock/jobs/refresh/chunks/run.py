"""Refresh a chunker's view: give source rows to the function, and write their children."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from lance import LanceDataset

from penstock.jobs.engine.finished import NewRows, encode_ids, failed_rows, rate_of
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.row_ranges import count_tasks, divide_all, divide_some
from penstock.jobs.refresh.altering.changes import find_changes
from penstock.jobs.refresh.chunks import spark_chunks
from penstock.jobs.refresh.chunks.children import ChildRows
from penstock.jobs.refresh.chunks.kernel import (
    ChunkOrder,
    ChunkTask,
    VersionToOpen,
    chunk_kernel,
)
from penstock.jobs.refresh.chunks.limits import ChunkLimit
from penstock.jobs.refresh.chunks.matching import ComparedColumns
from penstock.jobs.refresh.chunks.plan import ChunkWork, UnsettledRows
from penstock.jobs.refresh.context import Plan, SourceVersions, ViewChange, Work
from penstock.jobs.refresh.rows.run import match_rows
from penstock.jobs.refresh.tasks import make_missing, open_engine, to_knobs
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.lance.columns.computed import list_computed
from penstock.lance.columns.fields import parse_path
from penstock.lance.diff.fragments import has_blobs
from penstock.lance.diff.row_diff import scan_all
from penstock.lance.diff.row_sets import (
    Ids,
    RowPlaces,
    RowSet,
    is_among,
    join_row_sets,
    sort_distinct,
)
from penstock.lance.read.row_ids import scan_rows
from penstock.lance.read.scans import quote_path
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID, Column, Rows


def run(work: Work, plan: Plan) -> ViewChange:
    """Make the children that a plan asks for."""
    todo = plan.work
    if isinstance(todo, UnsettledRows):
        todo = todo.settle(partial(_match, work))
    assert isinstance(todo, ChunkWork)
    order = _make_order(work, todo)
    notes = []
    if order.tasks:
        keys = [order.key(number) for number in range(len(order.tasks))]
        sizes = [task.rows for task in order.tasks]
        with open_engine(work) as opened:
            start = partial(_start, opened, order)
            notes = make_missing(opened, (order.function,), keys, sizes, start)
    return replace(
        _to_change(work, todo, notes),
        rows_read=sum(t.rows for t in order.tasks),
        calls_of_all=_count_all(work),
    )


def _count_all(work: Work) -> int | None:
    """How many source rows the function would be given anew, if that takes no reading."""
    rows = work.definition.rows
    if rows is None or rows.filter is not None or work.spec.output_limit is not None:
        return None
    return sum(each.dataset_now.count_rows() for each in work.sources.values())


def _match(work: Work, dataset: LanceDataset, rows: RowPlaces, query: Rows) -> RowPlaces:
    """Those of some rows of a version of the source that match a query."""
    (source,) = work.sources.values()
    # Where it is read as it was, its columns have the names that they had.
    read = source.source if dataset is source.dataset_now else work.definition_then.sources[0]
    at = replace(source, source=read, now=dataset.version, dataset_now=dataset)
    return match_rows(work, at, rows, query)


def _start(work: Work, order: ChunkOrder, numbers: Sequence[int], engine: Engine) -> Tasks:
    (source,) = work.sources.values()
    rows = work.definition.rows
    if rows is not None and rows.engine == "spark":
        return spark_chunks.start(engine, order, numbers, source)
    return Tasks(engine, chunk_kernel(order, numbers), len(numbers), SCHEMA)


# Before -------------------------------------------------------------------------------------


def _make_order(work: Work, todo: ChunkWork) -> ChunkOrder:
    (source,) = work.sources.values()
    definition, spec = work.definition, work.spec
    assert definition.rows is not None
    assert definition.function is not None
    columns = {column.name: column for column in definition.rows.columns}
    limit = None
    if spec.output_limit is None:
        tasks = _divide(work, source, todo)
    else:
        limit = _make_limit(work, source, todo)
        tasks = (ChunkTask(),) if limit.ids else ()
    outputs = [output.column for output in definition.function.outputs]
    return ChunkOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=VersionToOpen.of(work.location, work.view.version),
        source=VersionToOpen.of(source.location, source.now),
        function=definition.function,
        columns={column.name: column.expression for column in definition.rows.columns},
        where=definition.rows.filter,
        inherited={name: _ask(columns[name]) for name in definition.inherited},
        written=(SOURCE_ROW_ID, CHILD_INDEX, *definition.inherited, *outputs),
        compared=_find_compared(work, outputs),
        tasks=tasks,
        had=encode_ids(_sources_before(todo)),
        known=encode_ids(todo.known),
        limit=limit,
        knobs=to_knobs(spec),
        max_rows=spec.max_rows_per_fragment,
    )


def _find_compared(work: Work, outputs: Sequence[str]) -> ComparedColumns | None:
    """The columns by which children are compared; None where that would mean to read blobs."""
    inherited, fields = work.definition.inherited, work.view.lance_schema.fields()
    if any(has_blobs(each) for each in fields if each.name() in (*inherited, *outputs)):
        return None
    added = (each for each in list_computed(work.view.schema) if each.name not in outputs)
    read = {parse_path(path)[0] for each in added for path in each.inputs}
    content = tuple(name for name in outputs if name in read)
    if work.spec.alteration is not None:
        # The others are null in the rows that are there, and filled in afterwards.
        kept = find_changes(work.spec).kept
        inherited = tuple(name for name in inherited if name in kept)
    return ComparedColumns(
        tuple(outputs), content if len(content) < len(outputs) else (), inherited
    )


def _ask(column: Column) -> str:
    """Lance's expression for a column; None for one that only Spark computes."""
    return column.expression if column.path is None else quote_path(column.path)


def _divide(work: Work, source: SourceVersions, todo: ChunkWork) -> tuple[ChunkTask, ...]:
    """The tasks; each has some of the rows to call, and some of the rows to copy."""
    spec, slots = work.spec, work.get_engine().slots
    call, copied = todo.call, ChildRows(*[np.empty(0, np.int64)] * 5)
    if todo.removed is not None:
        copied = todo.removed.take(is_among(todo.removed.sources, np.sort(todo.follow)))
    total = source.dataset_now.count_rows() if call is None else len(call.ids)
    rows = max(total, len(copied.sources))
    count = count_tasks(rows, slots, spec.concurrency, spec.source_task_size)
    if call is None:
        calls = divide_all(source.dataset_now, count)
    else:
        calls = divide_some(call.fragments, call.offsets, count)
    follows = divide_some(copied.fragments, copied.offsets, count)
    return tuple(
        ChunkTask(
            calls[n] if n < len(calls) else (),
            follows[n] if n < len(follows) else (),
        )
        for n in range(max(len(calls), len(follows)))
    )


def _make_limit(work: Work, source: SourceVersions, todo: ChunkWork) -> ChunkLimit:
    rows, most = work.definition.rows, work.spec.output_limit
    assert rows is not None
    assert most is not None
    assert todo.kept is not None
    call = todo.call
    if call is None:
        call = scan_all(source.dataset_now)
        if rows.filter is not None and rows.engine == "lance":
            holding = [each.fragment_id for each in source.dataset_now.get_fragments()]
            parts = [ids for ids, _, _ in scan_rows(source.dataset_now, holding, rows.filter)]
            passing = np.sort(np.concatenate([np.empty(0, np.int64), *parts]))
            call = call.take(is_among(call.ids, passing))
    is_cut = todo.kept.sources == todo.cut
    # More rows than there is room for are not needed to see that the view is full.
    kept = todo.kept.sources[~is_cut][:most]
    sources, firsts = np.unique(kept, return_index=True)
    ids, fragments, offsets = (each.astype(np.int64).tobytes() for each in call)
    return ChunkLimit(
        most,
        ids,
        fragments,
        offsets,
        sources.tobytes(),
        np.append(firsts, len(kept)).astype(np.int64).tobytes(),
        todo.cut,
        int(is_cut.sum()),
    )


def _sources_before(todo: ChunkWork) -> Ids:
    """Source rows that have children in the view, among those that get others."""
    found = np.empty(0, np.int64) if todo.removed is None else todo.removed.sources
    return found if todo.cut is None else np.append(found, todo.cut)


# After --------------------------------------------------------------------------------------


def _to_change(work: Work, todo: ChunkWork, notes: list[NewRows]) -> ViewChange:
    mine = [note for note in notes if note.attempt == work.attempt.number]
    removed, gone, cut = todo.removed, 0, None
    staying = join_row_sets(note.staying for note in notes)
    parts: list[Ids] = []
    updated = 0
    if removed is not None:
        parts.append(removed.row_ids)
        is_gone = is_among(removed.sources, todo.gone)
        gone, updated = int(is_gone.sum()), len(sort_distinct(removed.sources[~is_gone]))
    if work.spec.output_limit is not None:
        over, replaced, cut = _cut_off(work.spec.output_limit, todo, notes)
        parts += [over, replaced]
        gone, updated = gone + len(over), updated + bool(len(replaced))
    if len(staying):
        work.attempt.log(f"{len(staying)} rows came out as they are in the view, and stay")
    return ViewChange(
        removes="all" if removed is None else _leave_out(np.concatenate(parts), staying),
        fragments=tuple(each for note in notes for each in note.fragments),
        rows_inserted=sum(note.inserted for note in notes),
        rows_updated=updated - sum(note.unchanged for note in notes),
        rows_deleted=work.view.count_rows() if removed is None else gone,
        function_calls=sum(note.calls for note in notes),
        failed=failed_rows(notes),
        alike=join_row_sets(note.alike for note in notes),
        cut=cut,
        rate=rate_of(mine),
    )


def _leave_out(ids: Ids, staying: RowSet) -> Ids:
    return ids[~staying.contains(ids)]


def _cut_off(
    most: int, todo: ChunkWork, notes: list[NewRows]
) -> tuple[Ids, Ids, tuple[int, int] | None]:
    """View rows beyond the limit, those that were made again, and the last admitted row."""
    kept = todo.kept
    assert kept is not None
    counts = [pair for note in notes for pair in note.counts]
    ids, numbers = np.array(counts, np.int64).reshape(-1, 2).T
    is_again = (kept.sources == todo.cut) & bool((ids == todo.cut).any())
    replaced, kept = kept.row_ids[is_again], kept.take(~is_again)
    made = np.concatenate([np.empty(0, np.int64), *map(np.arange, numbers)])
    sources = np.concatenate([kept.sources, np.repeat(ids, numbers)])
    places = np.concatenate([kept.numbers, made])
    order = np.lexsort((places, sources))
    over = order[most:]
    is_cut = todo.is_cut or len(over) > 0 or any(note.is_cut for note in notes)
    cut = None
    if is_cut and not most:
        cut = -1, -1
    elif is_cut:
        last = order[most - 1]
        cut = int(sources[last]), int(places[last])
    return kept.row_ids[over[over < len(kept.sources)]], replaced, cut
