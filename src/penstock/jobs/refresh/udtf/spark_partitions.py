"""Have Spark compute the rows of a udtf's query, tell its partitions, and give them to workers."""

from collections.abc import Sequence
from typing import Any

from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.frames import get_sql, load_frames
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
        sums = query(sql, SUMS, {ROWS: label_rows(work, sql, None)})
    # Spark has no common error for a query that it does not understand.
    except Exception as error:
        raise explain(error) from error
    rows = wait_for(work.attempt, work.place, SparkWork(sql, rows_of(sums)), patience=0)
    return {row.label: PartitionRows(row.n, f"{row.n} {row.s} {row.x}") for row in rows}


def start(work: Work, order: UdtfOrder, numbers: Sequence[int], sql: Engine) -> FrameTasks:
    """Give the partitions of these tasks to the function."""
    units = {label: number for number in numbers for label in order.tasks[number]}
    rows = label_rows(work, sql, units)
    # By id as the source has them; else in an order that the rows alone decide.
    inner = ID if work.definition.rows is not None else DIGEST
    together = rows.repartition(len(numbers), UNIT).sortWithinPartitions(UNIT, LABEL, inner)
    kernel = spark_udtf_kernel(order, order.function.inputs)
    return FrameTasks(sql, together, kernel, SCHEMA)


def label_rows(work: Work, sql: Engine, units: dict[str, int] | None) -> Any:
    """The query's rows as the function reads them, each with its partition and digest.

    With units, only rows of the partitions that have one.
    """
    definition = work.definition
    assert definition.function is not None
    inputs, by = definition.function.inputs, definition.partition_by
    needed = tuple(dict.fromkeys([*inputs, *([by] if by else [])]))
    added = (
        f"CAST(NULL AS string) AS {LABEL}",
        f"CAST(NULL AS bigint) AS {DIGEST}",
        f"CAST(NULL AS int) AS {UNIT}",
    )
    frame = load_rows(work, sql, needed, *added)
    digested = (*inputs, *([] if definition.rows is None else [ID]))
    return frame.mapInArrow(label_kernel(Labelling(digested, by, units)), frame.schema)


def load_rows(
    work: Work, sql: Engine, names: Sequence[str], *added: str, most_rows: int | None = None
) -> Any:
    """These columns of the query's rows, with others beside them; single rows also have `ID`.

    A query over single rows may be asked of the source's first rows alone.
    """
    definition = work.definition
    if definition.rows is None:
        made = query(sql, get_sql(definition), load_frames(work, sql))
        return pick(sql, spell_columns(made, tuple(names)), *map(quote, names), *added)
    (source,) = work.sources.values()
    reads, job = source.source.reads, work.attempt.job
    scan = make_scan(
        source.dataset_now, source.location, reads, job, sql.slots, ID, most_rows=most_rows
    )
    texts = {column.name: column.expression for column in definition.rows.columns}
    outputs = [f"({texts[name]}) AS {quote(name)}" for name in names]
    where, name = definition.rows.filter, source.source.name
    return pick(sql, load(sql, scan), *outputs, ID, *added, where=where, name=name)
