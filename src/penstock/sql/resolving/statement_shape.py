"""Which statements Lance may answer alone: filter, projection and limit over one table.

A view follows its query in the best way that is right (`shape.py`); a statement is only run once,
so whatever is not that plain is Spark's, which keeps its order and its limits.
"""

from sqlglot import exp

from penstock.sql.parsing.flat_select import take_apart
from penstock.sql.resolving.calls import find_calls
from penstock.sql.resolving.resolve import ResolvedStatement
from penstock.sql.resolving.shape import Shape
from penstock.sql.spark.functions import AGGREGATES, GENERATORS, WINDOWS

CLAUSES = {"expressions", "from_", "where", "limit"}
FOR_SPARK = Shape("whole", "it is more than a filter and a projection of one table")


def find_statement_shape(sql: str, tree: exp.Query, resolved: ResolvedStatement) -> Shape:
    """Shape "rows" for what Lance may answer; everything else is whole."""
    if not isinstance(tree, exp.Select) or not _is_plain(tree) or not _has_names(resolved):
        return FOR_SPARK
    calls = {call.name for call in find_calls(sql, "spark")}
    if calls & (AGGREGATES | GENERATORS | WINDOWS) or take_apart(sql, tree, "spark") is None:
        return FOR_SPARK
    limit = tree.args.get("limit")
    if limit is None:
        return Shape("rows")
    count = limit.args.get("expression") if isinstance(limit, exp.Limit) else None
    if not isinstance(count, exp.Literal) or not count.is_int or int(count.name) >= 2**62:
        return FOR_SPARK
    return Shape("rows", limit=int(count.name))


def _is_plain(tree: exp.Select) -> bool:
    if any(value for key, value in tree.args.items() if key not in CLAUSES):
        return False
    place = tree.args.get("from_")
    table = place.this if isinstance(place, exp.From) else None
    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("laterals"):
        return False
    return all(node is tree for node in tree.find_all(exp.Query)) and not tree.find(exp.Window)


def _has_names(resolved: ResolvedStatement) -> bool:
    """Whether each output has a name of its own; Spark makes up the others."""
    names = [name.lower() for name in resolved.output_columns]
    return all(names) and len(set(names)) == len(names)
