"""Refresh a view over partitions: give partitions to the function, and write what it makes."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from penstock.jobs.engine.finished import encode_ids, failed_rows, rate_of
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.refresh.chunks.kernel import VersionToOpen
from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.tasks import make_missing, to_knobs
from penstock.jobs.refresh.udtf.kernel import UdtfOrder, udtf_kernel
from penstock.jobs.refresh.udtf.partitions import number_of
from penstock.jobs.refresh.udtf.plan import UdtfWork
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.model.views import PARTITION


def run(work: Work, plan: Plan) -> ViewChange:
    """Make the partitions that a plan asks for."""
    todo = plan.work
    assert isinstance(todo, UdtfWork)
    order = _make_order(work, todo)
    notes = []
    if order.tasks:
        keys = [order.key(number) for number in range(len(order.tasks))]
        sizes = [len(task) for task in order.tasks]
        notes = make_missing(work, (order.function,), keys, sizes, partial(_start, order))
    mine = [note for note in notes if note.attempt == work.attempt.number]
    deleted = work.view.count_rows() if plan.mode == "full" else todo.gone
    return ViewChange(
        removes="all" if todo.removed is None else todo.removed,
        fragments=tuple(each for note in notes for each in note.fragments),
        rows_inserted=sum(note.inserted for note in notes),
        rows_updated=len(todo.had & todo.call.keys()),
        rows_deleted=deleted,
        function_calls=sum(note.calls for note in notes),
        failed=failed_rows(notes),
        rate=rate_of(mine),
    )


def _start(order: UdtfOrder, numbers: Sequence[int], engine: Engine) -> Tasks:
    return Tasks(engine, udtf_kernel(order, numbers), len(numbers), SCHEMA)


def _make_order(work: Work, todo: UdtfWork) -> UdtfOrder:
    (source,) = work.sources.values()
    definition, spec = work.definition, work.spec
    assert definition.rows is not None
    assert definition.function is not None
    columns = {column.name: column.expression for column in definition.rows.columns}
    function, by = definition.function, definition.partition_by
    by = by or definition.partition_by_indexed_column
    outputs = [output.column for output in function.outputs]
    numbers = [number_of(label) for label in todo.had]
    return UdtfOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=VersionToOpen.of(work.location, work.view.version),
        source=VersionToOpen.of(source.location, source.now),
        function=function,
        how=todo.how,
        by=by or "",
        columns={name: columns[name] for name in function.inputs},
        written=(*([PARTITION] if by else []), *outputs),
        tasks=_divide(work, todo.call),
        had=encode_ids(np.array(numbers, np.int64)),
        knobs=to_knobs(spec),
        max_rows=spec.max_rows_per_fragment,
        max_bytes=function.needs.memory,
    )


def _divide(work: Work, partitions: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Partitions for each task, with about the same number of rows."""
    if not partitions:
        return ()
    count = min(len(partitions), work.spec.concurrency or work.get_engine().slots)
    tasks: list[list[str]] = [[] for _ in range(count)]
    loads = [0] * count
    for label, rows in sorted(partitions.items(), key=lambda item: (-item[1], item[0])):
        least = loads.index(min(loads))
        tasks[least].append(label)
        loads[least] += rows
    return tuple(tuple(task) for task in tasks)
