"""What a view's query gives, computed once more and on its own: by Spark over its sources.

What is below `LanceOrder` runs in Python workers, which need penstock installed.
"""

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct, json

from penstock.jobs.engine.needed_rows import ROW_ID
from penstock.jobs.refresh.context import SourceAt, Work
from penstock.jobs.refresh.rows.spark_rows import ID
from penstock.jobs.spark.gate.door import pick, query
from penstock.jobs.spark.lance_source import Piece, Scan, load, make_scan, show_conditions
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import cast_in, cast_out, quote, to_spark_schema
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.read.scans import scan_expressions
from penstock.lance.session.remote import open_version
from penstock.lance.write.column_files import get_fragment
from penstock.model.views import SOURCE_ROW_ID, Definition, Rows

if TYPE_CHECKING:
    from lance import LanceDataset


class Sample(Struct, frozen=True):
    """Every so many-th row of a source, or group; all of them when it is every first."""

    one_in: int = 1
    remainder: int = 0

    def of_ids(self, column: str) -> str | None:
        """The rows in Lance's SQL, by the column that has their ids."""
        return None if self.one_in == 1 else f"{column} % {self.one_in} = {self.remainder}"


def choose_sample(work: Work, view: "LanceDataset") -> Sample:
    """About as many of the view's rows as are asked for, other ones in each job."""
    wanted, definition = work.spec.verify_rows, work.definition
    # Rows that only the whole query decides about cannot be computed without the others.
    has_limit = definition.rows is not None and definition.rows.limit is not None
    if wanted is None or definition.shape == "whole" or has_limit:
        return Sample()
    one_in = max(1, view.count_rows() // max(1, wanted))
    seed = hashlib.sha256(work.attempt.job.encode()).digest()
    return Sample(one_in, int.from_bytes(seed[:4], "big") % one_in)


def compared_columns(definition: Definition) -> tuple[str, ...]:
    """The view's columns that its query gives; what functions give is not asked for again."""
    if definition.kind == "chunker":
        return (SOURCE_ROW_ID, *definition.inherited)
    names = decode_schema(definition.schema).names
    made = {out.column for each in definition.column_functions for out in each.outputs}
    return tuple(name for name in names if name not in made)


def recompute(work: Work, sql: Engine, sample: Sample) -> Any:
    """The rows of the query as a frame; of a query by rows those of the sample only."""
    definition = work.definition
    if definition.rows is None:
        frames = {
            each.source.name: load(sql, _scan(work, each, sql)) for each in work.sources.values()
        }
        return query(sql, definition.sql, frames)
    (source,) = work.sources.values()
    frame = _by_row(work, sql, source, definition.rows, sample)
    limit = definition.rows.limit
    return frame if limit is None else frame.orderBy(SOURCE_ROW_ID).limit(limit)


def _by_row(work: Work, sql: Engine, source: SourceAt, rows: Rows, sample: Sample) -> Any:
    # A source that is a view has a column SOURCE_ROW_ID of its own.
    scan = _scan(work, source, sql, ID, sample.of_ids(ROW_ID))
    names = compared_columns(work.definition)
    columns = {c.name: c.expression for c in rows.columns if c.name in names}
    if rows.engine == "spark":
        outputs = [f"({text}) AS {quote(name)}" for name, text in columns.items()]
        return pick(
            sql,
            load(sql, scan),
            f"{ID} AS {quote(SOURCE_ROW_ID)}",
            *outputs,
            where=rows.filter,
            name=source.source.name,
        )
    fields = [(name, work.view.schema.field(name).type) for name in columns]
    order = LanceOrder(scan, columns, rows.filter, encode_schema(pa.schema(fields)))
    count = len(scan.tasks)
    schema = [f"{quote(SOURCE_ROW_ID)} bigint"]
    if fields:
        schema.append(to_spark_schema(decode_schema(order.schema)))
    return sql.spark.range(0, count, 1, count).mapInArrow(
        partial(_read_by_lance, json.encode(order)), ", ".join(schema)
    )


def _scan(
    work: Work, source: SourceAt, sql: Engine, row_id: str | None = None, where: str | None = None
) -> Scan:
    reads = source.source.reads
    return make_scan(
        source.dataset_now, source.location, reads, work.attempt.job, sql.slots, row_id, where
    )


# In the workers ----------------------------------------------------------------------------------


class LanceOrder(Struct, frozen=True):
    """A query over rows in Lance's SQL; it travels to workers in the function itself."""

    scan: Scan
    columns: dict[str, str]
    where: str | None
    # Base64 of the Arrow schema of the outputs.
    schema: str


def _read_by_lance(
    encoded: bytes, numbers: "Iterator[pa.RecordBatch]"
) -> "Iterator[pa.RecordBatch]":
    order = json.decode(encoded, type=LanceOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in order.scan.tasks[number]:
                yield from _evaluate(order, piece)


def _evaluate(order: LanceOrder, piece: Piece) -> "Iterator[pa.RecordBatch]":
    scan, wanted = order.scan, decode_schema(order.schema)
    dataset = open_version(scan.location, scan.version, scan.reader)
    columns = {str(n): text for n, text in enumerate(order.columns.values())}
    for found in scan_expressions(
        dataset,
        get_fragment(dataset, piece.fragment),
        columns,
        show_conditions(piece, scan.where, order.where),
        with_row_id=True,
    ):
        made = found.select(list(columns)).rename_columns(list(order.columns))
        values = cast_in(cast_out(made, wanted)).columns
        ids = found.column(ROW_ID).cast(pa.int64())
        yield pa.record_batch([ids, *values], [SOURCE_ROW_ID, *order.columns])
