"""Views' queries with WITH and subqueries in FROM: merged into a flat SELECT where that is sure.

Both forms are read, and pass the same checks. The flat one is taken when it can be followed better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.sql.parsing.guard import guard
from penstock.sql.resolving.clauses import parse
from penstock.sql.resolving.joins import Obstacle
from penstock.sql.resolving.merging import merge_queries
from penstock.sql.resolving.shape import Shape
from penstock.sql.results import Columns, Refusal
from penstock.sql.spark.query import SparkQuery, read_spark_query


@dataclass(frozen=True, slots=True)
class MergedQuery:
    """A query as it was written and, if its subqueries could be merged, the flat one."""

    written: SparkQuery
    flat: SparkQuery | None = None


def read_merged_query(
    sql: str, tables: Mapping[str, Columns], kept: Sequence[str] | None
) -> MergedQuery | Refusal:
    """Read a view's query; `kept` are the outputs that a star gives."""
    found = read_spark_query(sql, tables, kept)
    if isinstance(found, Refusal):
        return found
    if found.shape.kind != "whole":
        return MergedQuery(found)
    flat = guard("merging its subqueries", lambda: _merge(found, tables))
    if isinstance(flat, Refusal):
        flat = f"its subqueries can't be merged: {flat.reason}"
    if isinstance(flat, str):
        return MergedQuery(replace(found, shape=Shape("whole", flat)))
    return MergedQuery(found, flat)


def _merge(found: SparkQuery, tables: Mapping[str, Columns]) -> SparkQuery | str:
    """The flat query; or why it is no better than what was found."""
    tree = parse(found.text)
    if tree.args.get("limit") or not _has_subqueries(tree):
        return found.shape.obstacle
    names = [each.name for each in found.outputs]
    try:
        text = merge_queries(found.text, tables, names)
    except Obstacle as error:
        return str(error)
    flat = read_spark_query(text, tables, None)
    if isinstance(flat, Refusal):
        return f"its subqueries can't be merged: {flat.reason}"
    if flat.shape.kind == "whole":
        return flat.shape.obstacle
    if set(flat.reads) != set(found.reads):
        return "WITH defines a query that nothing reads; remove it"
    types = {each.name: each.type for each in found.outputs}
    for each in flat.outputs:
        # It must be the same query.
        if each.name not in types or types[each.name] not in (None, each.type):
            return f"output {each.name} has another type once its subqueries are merged"
    return flat


def _has_subqueries(tree: exp.Query) -> bool:
    """Whether it has WITH, or a subquery in FROM."""
    places = (each.parent for each in tree.find_all(exp.Subquery))
    in_from = any(isinstance(each, exp.From | exp.Join) for each in places)
    return in_from or tree.find(exp.With) is not None
