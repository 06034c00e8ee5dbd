"""Compare a view with its query, computed again by Spark over the same versions of the sources.

Rows are compared by their hashes, in any order. The last digits of an aggregate may depend on the
order of its rows, so floats of such views count as equal up to nine digits. What is below
`LanceOrder` runs in Python workers, which need penstock installed.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from lance import LanceDataset
from msgspec import Struct, json

from penstock.jobs.engine.needed_rows import ROW_ID
from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import SourceVersions, Work
from penstock.jobs.refresh.frames import count_rows, get_sql, load_frames
from penstock.jobs.refresh.rows.spark_rows import ID
from penstock.jobs.spark.gate.checked_queries import pick, query
from penstock.jobs.spark.lance_source import FragmentPiece, Scan, load, make_scan, show_conditions
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, SparkWork, explain, rows_of
from penstock.jobs.spark.types import cast_in, cast_out, quote, to_spark_schema, to_spark_type
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.read.scans import quote_parts, scan_expressions
from penstock.lance.session.remote import open_version
from penstock.lance.write.column_files import get_fragment
from penstock.model.moments import show_moment
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID, Definition, Rows

# Beyond so many differing rows, they are not looked at one by one.
MAX_DIFFERING = 100_000
DIGITS = 9
BOTH, CHILDREN = "penstock_both", "penstock_children"
SUMS = (
    f"SELECT side, count(*) AS n, sum(CAST(a AS decimal(20, 0))) AS s, bit_xor(a) AS x "
    f"FROM {BOTH} GROUP BY side"
)
DIFFERING = (
    f"SELECT a, b, sum(side) AS side FROM {BOTH} GROUP BY a, b HAVING sum(side) <> 0 "
    f"LIMIT {MAX_DIFFERING}"
)
# A chunker's rows. Those of a source row whose children are not numbered from 0 on get hashes that
# no row of the query has.
NUMBERED = (
    "SELECT 1 AS side, IF(is_right, a, ~a) AS a, IF(is_right, b, ~b) AS b FROM ("
    "SELECT a, b, min(place) OVER w = 0 AND max(place) OVER w = count(*) OVER w - 1 "
    f"AND size(collect_set(place) OVER w) = count(*) OVER w AS is_right FROM {CHILDREN} "
    "WINDOW w AS (PARTITION BY id))"
)


class Sample(Struct, frozen=True):
    """Every n-th row or group of a source; all of them for n = 1."""

    one_in: int = 1
    remainder: int = 0

    @classmethod
    def one_of(cls, one_in: int, job: str) -> "Sample":
        """Others in each job."""
        seed = hashlib.sha256(job.encode()).digest()
        return cls(one_in, int.from_bytes(seed[:4], "big") % one_in)

    def of_ids(self, column: str) -> str | None:
        """The condition for these rows in Lance's SQL, by the column with their ids."""
        return None if self.one_in == 1 else f"{column} % {self.one_in} = {self.remainder}"


def verify(work: Work, view: LanceDataset) -> dict[str, Any]:
    """The certificate of a version of the view: what it was compared with, and the result."""
    names = compared_columns(work.definition)
    sample = choose_sample(work, view)
    engine = work.get_engine()
    total = count_rows(work)
    with open_sql(engine, total + view.count_rows()) as sql:
        try:
            ours, theirs = _hash_both(work, sql, view, names, sample)
            both = {BOTH: ours.unionAll(theirs)}
            sums = query(sql, SUMS, both)
        # Spark has no common error for a query that it does not understand.
        except Exception as error:
            raise explain(error) from error
        running = SparkWork(sql, rows_of(sums))
        rows = wait_for(work.attempt, work.place, running, patience=0)
        found = {row.side: (row.n, int(row.s), row.x) for row in rows}
        view_sums, query_sums = (found.get(side, (0, 0, 0)) for side in (1, -1))
        is_same = view_sums == query_sums
        missing, extra = (0, 0) if is_same else _count_differing(work, sql, both)
    return describe_compared(work, view, names, sample) | {
        "rows": view_sums[0],
        "rows_expected": query_sums[0],
        "rows_missing": missing,
        "rows_extra": extra,
        "is_equal": not missing and not extra,
        "digest": hashlib.sha256(json.encode(view_sums)).hexdigest(),
    }


def describe_compared(
    work: Work, view: LanceDataset, columns: Sequence[str], sample: Sample
) -> dict[str, Any]:
    """What a certificate is about; functions are not called for most of them."""
    versions = {"$".join(each.source.table): each.now for each in work.sources.values()}
    versions |= {"$".join(each.source.table): each.now for each in work.iceberg.values()}
    return {
        "view_version": view.version,
        "source_versions": versions,
        "moment": None if work.moment is None else show_moment(work.moment),
        "columns": list(columns),
        "one_in": sample.one_in,
        "function_calls": 0,
    }


def _hash_both(
    work: Work, sql: Engine, view: LanceDataset, names: Sequence[str], sample: Sample
) -> tuple[Any, Any]:
    """Frames with a row for each of the view's rows, and of the query's."""
    definition = work.definition
    is_chunker, is_by_row = definition.kind == "chunker", definition.rows is not None
    where = sample.of_ids(quote_parts((SOURCE_ROW_ID,))) if is_by_row else None
    columns = (*names, CHILD_INDEX) if is_chunker else names
    scan = make_scan(view, work.location, columns, work.attempt.job, sql.slots, where=where)
    here, there = load(sql, scan), recompute(work, sql, sample)
    if definition.keys is not None and sample.one_in > 1:
        keys = [_show(view.schema.field(name)) for name in definition.keys.columns]
        chosen = f"pmod(xxhash64({', '.join(keys)}), {sample.one_in}) = {sample.remainder}"
        here, there = pick(sql, here, where=chosen), pick(sql, there, where=chosen)
    is_joined = definition.keys is not None and bool(definition.keys.row_ids)
    is_exact = is_by_row or is_joined
    hashes = _hashes([view.schema.field(name) for name in names], is_exact=is_exact)
    if not is_chunker:
        return pick(sql, here, "1 AS side", *hashes), pick(sql, there, "-1 AS side", *hashes)
    children = pick(sql, here, f"{SOURCE_ROW_ID} AS id", f"{CHILD_INDEX} AS place", *hashes)
    # A row may have no children, but those in the view must be right: one row is expected for each.
    taken = there.join(here.select(SOURCE_ROW_ID), SOURCE_ROW_ID, "inner")
    return query(sql, NUMBERED, {CHILDREN: children}), pick(sql, taken, "-1 AS side", *hashes)


def _hashes(fields: "Sequence[pa.Field[Any]]", *, is_exact: bool) -> list[str]:
    """Two hashes of each row, which cut floats at different digits."""
    found = []
    for name, shift in (("a", False), ("b", not is_exact)):
        # A null does not change a hash, so it has to be marked.
        shown = ", ".join(
            f"isnull({quote(field.name)}), {_show(field, is_exact=is_exact, shift=shift)}"
            for field in fields
        )
        found.append(f"xxhash64({shown}) AS {name}")
    return found


def _show(field: "pa.Field[Any]", *, is_exact: bool = True, shift: bool = False) -> str:
    """A column in the form that is hashed, in the view's type."""
    kind = to_spark_type(field)
    value = f"CAST({quote(field.name)} AS {kind})"
    # Spark does not hash maps.
    if "map<" in kind:
        return f"to_json(struct({value}))"
    if kind in ("float", "double"):
        # As numbers, 0.0 and -0.0 have one hash.
        if is_exact:
            return f"CAST({value} AS string)"
        cut = f"1.0000000005D * {value}" if shift else value
        return f"nvl2({value}, format_string('%.{DIGITS - 1}e', CAST({cut} AS double) + 0D), NULL)"
    return value


def _count_differing(work: Work, sql: Engine, both: dict[str, Any]) -> tuple[int, int]:
    """How many rows of the query the view lacks, and how many extra rows it has."""
    running = SparkWork(sql, rows_of(query(sql, DIFFERING, both)))
    rows = wait_for(work.attempt, work.place, running, patience=0)
    by_first: Counter[int] = Counter()
    by_second: Counter[int] = Counter()
    for row in rows:
        by_first[row.a] += row.side
    for row in rows:
        if by_first[row.a]:
            by_second[row.b] += row.side
    differing = by_second.values()
    return -sum(n for n in differing if n < 0), sum(n for n in differing if n > 0)


def choose_sample(work: Work, view: LanceDataset) -> Sample:
    """About as many of the view's rows as requested, different ones in each job."""
    wanted, definition = work.spec.verify_rows, work.definition
    # Rows that depend on the whole query cannot be computed without the others.
    has_limit = definition.rows is not None and definition.rows.limit is not None
    if wanted is None or definition.shape == "whole" or has_limit:
        return Sample()
    return Sample.one_of(max(1, view.count_rows() // max(1, wanted)), work.attempt.job)


def compared_columns(definition: Definition) -> tuple[str, ...]:
    """The view's columns that its query gives; functions are not called again."""
    if definition.kind == "chunker":
        return (SOURCE_ROW_ID, *definition.inherited)
    names = decode_schema(definition.schema).names
    made = {out.column for each in definition.column_functions for out in each.outputs}
    return tuple(name for name in names if name not in made)


def recompute(work: Work, sql: Engine, sample: Sample) -> Any:
    """The query's rows as a frame; for a query over rows only those of the sample."""
    definition = work.definition
    if definition.rows is None:
        return query(sql, get_sql(definition), load_frames(work, sql))
    (source,) = work.sources.values()
    frame = _by_row(work, sql, source, definition.rows, sample)
    limit = definition.rows.limit
    return frame if limit is None else frame.orderBy(SOURCE_ROW_ID).limit(limit)


def _by_row(work: Work, sql: Engine, source: SourceVersions, rows: Rows, sample: Sample) -> Any:
    # A source that is a view has a SOURCE_ROW_ID column of its own.
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
    work: Work,
    source: SourceVersions,
    sql: Engine,
    row_id: str | None = None,
    where: str | None = None,
) -> Scan:
    reads = source.source.reads
    return make_scan(
        source.dataset_now, source.location, reads, work.attempt.job, sql.slots, row_id, where
    )


# In the workers ----------------------------------------------------------------------------------


class LanceOrder(Struct, frozen=True):
    """A query over rows in Lance's SQL; sent to workers in the kernel's closure."""

    scan: Scan
    columns: dict[str, str]
    where: str | None
    # Base64 of the Arrow schema of the outputs.
    schema: str


def _read_by_lance(encoded: bytes, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    order = json.decode(encoded, type=LanceOrder)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in order.scan.tasks[number]:
                yield from _evaluate(order, piece)


def _evaluate(order: LanceOrder, piece: FragmentPiece) -> Iterator[pa.RecordBatch]:
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
