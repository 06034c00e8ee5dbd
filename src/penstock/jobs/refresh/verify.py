"""A view beside its query, computed once more by Spark over the same versions of the sources.

Rows are compared by their hashes, whatever their order. What aggregates give may differ in the
last digits with the order of their rows, so floats of such views count as equal up to nine digits.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import json

from penstock.jobs.engine.waiting import wait_for
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.recompute import Sample, choose_sample, compared_columns, recompute
from penstock.jobs.spark.gate.door import pick, query
from penstock.jobs.spark.lance_source import load, make_scan
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, Running, explain, rows_of
from penstock.jobs.spark.types import quote, to_spark_type
from penstock.lance.read.scans import quote_parts
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

# More rows that differ are not looked at one by one.
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
# The source rows that a chunker's rows come from. One whose children are not numbered from 0 on
# gets hashes that no row of the query has.
PARENTS = (
    "SELECT 1 AS side, IF(is_right, a, ~a) AS a, IF(is_right, b, ~b) AS b FROM ("
    f"SELECT a, b, min(place) = 0 AND max(place) = count(*) - 1 "
    f"AND count(DISTINCT place) = count(*) AS is_right FROM {CHILDREN} GROUP BY id, a, b)"
)


def verify(work: Work, view: "LanceDataset") -> dict[str, Any]:
    """The certificate of a version of the view: what it was compared with, and how that went."""
    names = compared_columns(work.definition)
    sample = choose_sample(work, view)
    engine = work.get_engine()
    total = sum(each.dataset_now.count_rows() for each in work.sources.values())
    with open_sql(engine, total + view.count_rows()) as sql:
        try:
            ours, theirs = _hash_both(work, sql, view, names, sample)
            both = {BOTH: ours.unionAll(theirs)}
            sums = query(sql, SUMS, both)
        # Spark has no common error for a query that it does not understand.
        except Exception as error:
            raise explain(error) from error
        running = Running(sql, rows_of(sums))
        rows = wait_for(work.attempt, work.place, running, patience=0)
        found = {row.side: (row.n, int(row.s), row.x) for row in rows}
        view_sums, query_sums = (found.get(side, (0, 0, 0)) for side in (1, -1))
        is_same = view_sums == query_sums
        missing, extra = (0, 0) if is_same else _count_differing(work, sql, both)
    return {
        "view_version": view.version,
        "source_versions": {
            "$".join(each.source.table): each.now for each in work.sources.values()
        },
        "columns": list(names),
        "one_in": sample.one_in,
        "rows": view_sums[0],
        "rows_expected": query_sums[0],
        "rows_missing": missing,
        "rows_extra": extra,
        "is_equal": not missing and not extra,
        "digest": hashlib.sha256(json.encode(view_sums)).hexdigest(),
    }


def _hash_both(
    work: Work, sql: Engine, view: "LanceDataset", names: Sequence[str], sample: Sample
) -> tuple[Any, Any]:
    """Frames with a row for each of the view's rows, and of the query's."""
    definition = work.definition
    is_chunker, is_by_row = definition.kind == "chunker", definition.rows is not None
    where = sample.of_ids(quote_parts((SOURCE_ROW_ID,))) if is_by_row else None
    columns = (*names, CHILD_INDEX) if is_chunker else names
    scan = make_scan(view, work.location, columns, work.attempt.job, sql.slots, where=where)
    here, there = load(sql, scan), recompute(work, sql, sample)
    if definition.groups is not None and sample.one_in > 1:
        keys = [_show(view.schema.field(key.name)) for key in definition.groups.keys]
        chosen = f"pmod(xxhash64({', '.join(keys)}), {sample.one_in}) = {sample.remainder}"
        here, there = pick(sql, here, where=chosen), pick(sql, there, where=chosen)
    hashes = _hashes([view.schema.field(name) for name in names], is_exact=is_by_row)
    if not is_chunker:
        return pick(sql, here, "1 AS side", *hashes), pick(sql, there, "-1 AS side", *hashes)
    children = pick(sql, here, f"{SOURCE_ROW_ID} AS id", f"{CHILD_INDEX} AS place", *hashes)
    # A row may have no children; what the view has of others must be right.
    parents = here.select(SOURCE_ROW_ID)
    taken = there.join(parents, SOURCE_ROW_ID, "left_semi")
    return query(sql, PARENTS, {CHILDREN: children}), pick(sql, taken, "-1 AS side", *hashes)


def _hashes(fields: "Sequence[pa.Field[Any]]", *, is_exact: bool) -> list[str]:
    """Two hashes of each row; they differ in where floats are cut."""
    found = []
    for name, shift in (("a", False), ("b", not is_exact)):
        # A null does not change a hash, so that it has to be told apart.
        shown = ", ".join(
            f"isnull({quote(field.name)}), {_show(field, is_exact=is_exact, shift=shift)}"
            for field in fields
        )
        found.append(f"xxhash64({shown}) AS {name}")
    return found


def _show(field: "pa.Field[Any]", *, is_exact: bool = True, shift: bool = False) -> str:
    """A column as it is hashed, in the view's type."""
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
    """How many rows of the query the view lacks, and how many it has besides."""
    running = Running(sql, rows_of(query(sql, DIFFERING, both)))
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
