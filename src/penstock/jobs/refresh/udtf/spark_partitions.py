"""Have Spark compute the rows of a udtf's query, tell its partitions, and give them to workers."""

from collections.abc import Sequence
from typing import Any

from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.frames import load_frames
from penstock.jobs.refresh.queries import spell_columns
from penstock.jobs.refresh.rows.spark_rows import ID
from penstock.jobs.refresh.udtf.making import UdtfOrder
from penstock.jobs.refresh.udtf.plan import PartitionRows
from penstock.jobs.refresh.udtf.spark_kernel import (
    DIGEST,
    LABEL,
    UNIT,
    Labelling,
    label_kernel,
    spark_udtf_kernel,
)
from penstock.jobs.spark.gate.checked_queries import pick, query
from penstock.jobs.spark.lance_source import load, make_scan
from penstock.jobs.spark.tasks import Engine, FrameTasks, SparkWork, explain, rows_of
from penstock.jobs.spark.types import quote

ROWS = "penstock_rows"
SUMS = (
    f"SELECT {LABEL} AS label, count(*) AS n, sum(CAST({DIGEST} AS decimal(20, 0))) AS s, "
    f"bit_xor({DIGEST}) AS x FROM {ROWS} GROUP BY {LABEL}"
)


def find_partitions(work: Work, sql: Engine) -> dict[str, PartitionRows]:
    """All partitions of the query, by label."""
    try:
        sums = query(sql, SUMS, {ROWS: _label(work, sql, None)})
    # Spark has no common error for a query that it does not understand.
    except Exception as error:
        raise explain(error) from error
    rows = wait_for(work.attempt, work.place, SparkWork(sql, rows_of(sums)), patience=0)
    return {row.label: PartitionRows(row.n, f"{row.n} {row.s} {row.x}") for row in rows}


def start(work: Work, order: UdtfOrder, numbers: Sequence[int], sql: Engine) -> FrameTasks:
    """Give the partitions of these tasks to the function."""
    units = {label: number for number in numbers for label in order.tasks[number]}
    rows = _label(work, sql, units)
    # By id as the source has them; else in an order that the rows alone decide.
    inner = ID if work.definition.rows is not None else DIGEST
    together = rows.repartition(len(numbers), UNIT).sortWithinPartitions(UNIT, LABEL, inner)
    kernel = spark_udtf_kernel(order, order.function.inputs)
    return FrameTasks(sql, together, kernel, SCHEMA)


def _label(work: Work, sql: Engine, units: dict[str, int] | None) -> Any:
    """The query's rows as the function reads them, each with its partition and digest."""
    definition = work.definition
    assert definition.function is not None
    inputs, by = definition.function.inputs, definition.partition_by
    needed = tuple(dict.fromkeys([*inputs, *([by] if by else [])]))
    added = [
        f"CAST(NULL AS string) AS {LABEL}",
        f"CAST(NULL AS bigint) AS {DIGEST}",
        f"CAST(NULL AS int) AS {UNIT}",
    ]
    digested: tuple[str, ...] = tuple(inputs)
    if definition.rows is None:
        made = query(sql, definition.sql, load_frames(work, sql))
        frame = pick(sql, spell_columns(made, needed), *map(quote, needed), *added)
    else:
        (source,) = work.sources.values()
        reads, job = source.source.reads, work.attempt.job
        scan = make_scan(source.dataset_now, source.location, reads, job, sql.slots, ID)
        texts = {column.name: column.expression for column in definition.rows.columns}
        outputs = [f"({texts[name]}) AS {quote(name)}" for name in needed]
        where, name = definition.rows.filter, source.source.name
        frame = pick(sql, load(sql, scan), *outputs, ID, *added, where=where, name=name)
        digested = (*digested, ID)
    return frame.mapInArrow(label_kernel(Labelling(digested, by, units)), frame.schema)
