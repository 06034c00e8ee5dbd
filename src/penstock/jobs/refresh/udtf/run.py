"""Refresh a view over partitions: give partitions to the function, and write what it makes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from msgspec import structs

from penstock.jobs.engine.finished import encode_ids, failed_rows, rate_of
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.refresh.chunks.kernel import VersionToOpen
from penstock.jobs.refresh.context import Plan, ViewChange, Work
from penstock.jobs.refresh.tasks import make_missing, to_knobs
from penstock.jobs.refresh.udtf import spark_partitions
from penstock.jobs.refresh.udtf.kernel import udtf_kernel
from penstock.jobs.refresh.udtf.making import UdtfOrder
from penstock.jobs.refresh.udtf.partitions import Partitioning, number_of
from penstock.jobs.refresh.udtf.plan import SparkPartitions, UdtfWork, choose_partitions
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, SparkWork, Tasks
from penstock.model.views import PARTITION

Start = Callable[[UdtfOrder, Sequence[int], Engine], SparkWork]


def run(work: Work, plan: Plan) -> ViewChange:
    """Make the partitions that a plan asks for."""
    if not isinstance(plan.work, SparkPartitions):
        assert isinstance(plan.work, UdtfWork)
        return _make(work, plan, plan.work, start_tasks)
    with open_sql(work.get_engine(), count_rows(work)) as sql:
        opened = replace(work, get_engine=lambda: sql)
        found = spark_partitions.find_partitions(opened, sql)
        todo = choose_partitions(opened, found)
        change = _make(opened, plan, todo, partial(spark_partitions.start, opened))
    return replace(change, partitions={label: rows.digest for label, rows in found.items()})


def _make(work: Work, plan: Plan, todo: UdtfWork, start: Start) -> ViewChange:
    order = make_order(work, todo.call, todo.how, todo.had)
    notes = []
    if order.tasks:
        keys = [order.key(number) for number in range(len(order.tasks))]
        sizes = [len(task) for task in order.tasks]
        notes = make_missing(work, (order.function,), keys, sizes, partial(start, order))
    mine = [note for note in notes if note.attempt == work.attempt.number]
    deleted = work.view.count_rows() if plan.mode == "full" else todo.gone
    return ViewChange(
        removes="all" if todo.removed is None else todo.removed,
        fragments=tuple(each for note in notes for each in note.fragments),
        rows_inserted=sum(note.inserted for note in notes),
        rows_updated=len(todo.had & todo.call.keys()),
        rows_deleted=deleted,
        function_calls=sum(note.calls for note in notes),
        calls_of_all=todo.of,
        rows_read=len(todo.call),
        failed=failed_rows(notes),
        rate=rate_of(mine),
    )


def start_tasks(order: UdtfOrder, numbers: Sequence[int], engine: Engine) -> Tasks:
    """Run these tasks over partitions that Lance reads."""
    return Tasks(engine, udtf_kernel(order, numbers), len(numbers), SCHEMA)


def make_order(
    work: Work,
    call: Mapping[str, int],
    how: Partitioning | None,
    had: frozenset[str] = frozenset(),
    *,
    is_check: bool = False,
) -> UdtfOrder:
    """What workers have to do for these partitions, which have so many rows each."""
    definition, spec = work.definition, work.spec
    assert definition.function is not None
    function = definition.function
    by = definition.partition_by or definition.partition_by_indexed_column
    outputs = [output.column for output in function.outputs]
    order = UdtfOrder(
        job=work.attempt.job,
        attempt=work.attempt.number,
        view=VersionToOpen.of(work.location, work.view.version),
        function=function,
        by=by or "",
        written=(*([PARTITION] if by else []), *outputs),
        tasks=_divide(work, call),
        had=encode_ids(np.array([number_of(label) for label in had], np.int64)),
        knobs=to_knobs(spec),
        max_rows=spec.max_rows_per_fragment,
        max_bytes=function.needs.memory,
        is_check=is_check,
    )
    if how is None:
        return order
    (source,) = work.sources.values()
    assert definition.rows is not None
    columns = {column.name: column.expression for column in definition.rows.columns}
    return structs.replace(
        order,
        source=VersionToOpen.of(source.location, source.now),
        how=how,
        columns={name: columns[name] for name in function.inputs},
    )


def count_rows(work: Work) -> int:
    """How many rows the sources have."""
    return sum(each.dataset_now.count_rows() for each in work.sources.values())


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
