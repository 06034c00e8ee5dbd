"""The kinds of nodes that a view's query may have, and the arguments they may have.

Functions are checked by their words (`words.py`), so any of them passes here.
"""

from collections.abc import Iterator

from sqlglot import exp

KINDS: tuple[type[exp.Expr], ...] = (
    # The frame of a query.
    exp.Select, exp.From, exp.Where, exp.Group, exp.Having, exp.Qualify, exp.Order, exp.Ordered,
    exp.Sort, exp.Cluster, exp.Distribute, exp.Limit, exp.Offset, exp.Distinct, exp.Subquery,
    exp.CTE, exp.With, exp.Union, exp.Intersect, exp.Except, exp.Join, exp.Lateral, exp.Values,
    exp.Table, exp.TableAlias, exp.Tuple, exp.GroupingSets, exp.Rollup, exp.Cube,
    # Names, values and types.
    exp.Alias, exp.Aliases, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Boolean,
    exp.Null, exp.HexString, exp.Var, exp.DataType, exp.DataTypeParam, exp.ColumnDef,
    exp.Interval, exp.IntervalSpan,
    # Expressions.
    exp.Binary, exp.Unary, exp.Func, exp.Between, exp.In, exp.Bracket, exp.Lambda, exp.Window,
    exp.WindowSpec, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.AtTimeZone,
    exp.SubqueryPredicate, exp.JSONPath, exp.JSONPathPart, exp.Slice,
)  # fmt: skip
# For these nodes: arguments that do not change which rows there are, or where they come from.
PARTS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(["with_", "kind", "expressions", "distinct", "from_", "laterals",
                           "joins", "where", "group", "having", "qualify", "windows", "order",
                           "sort", "cluster", "distribute", "limit", "offset"]),
    exp.Table: frozenset(["this", "db", "catalog", "alias", "joins", "laterals"]),
    exp.Join: frozenset(["this", "side", "kind", "on", "using", "method"]),
    exp.Subquery: frozenset(["this", "alias", "with_", "joins", "laterals", "order", "limit",
                             "offset", "where", "group", "having"]),
    exp.Lateral: frozenset(["this", "view", "outer", "alias", "ordinality"]),
}  # fmt: skip
METHODS = ("", "NATURAL")
# Functions that make a large value of a small one, and the largest number they may get.
GROWING = (exp.Repeat, exp.Pad, exp.Space, exp.GenerateSeries)
GROWING_NAMES = {"array_repeat"}
MAX_COUNT = 1_000_000


def find_foreign(tree: exp.Expr) -> tuple[str, exp.Expr] | None:
    """The first node that no query of a view may have, and why."""
    return next(_find(tree), None)


def _find(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for node in tree.walk():
        if not isinstance(node, KINDS):
            yield f"{_show(node)} is no part of a view's query", node
        listed = PARTS.get(type(node))
        for part in sorted(key for key, value in node.args.items() if value):
            if listed is not None and part not in listed:
                yield _explain(node, part), node
        if isinstance(node, exp.Select) and not node.expressions:
            # Spark would read FROM as a column.
            yield "SELECT names no columns", node
        if (count := _multiply(node)) > MAX_COUNT:
            yield f"a value of {count} parts is too large; at most {MAX_COUNT} are made", node
        if isinstance(node, exp.Join) and str(node.args.get("method") or "") not in METHODS:
            yield f"{node.args['method']} JOIN is no part of a view's query", node


def _multiply(node: exp.Expr) -> int:
    """How many times a growing function, and those around it, repeat their input."""
    count, outer = _find_count(node), node.parent
    while count and outer is not None:
        count, outer = count * max(1, _find_count(outer)), outer.parent
    return count


def _find_count(node: exp.Expr) -> int:
    """The largest literal number that a growing function gets; 0 for other nodes."""
    is_named = isinstance(node, exp.Anonymous) and node.name.lower() in GROWING_NAMES
    if not is_named and not isinstance(node, GROWING):
        return 0
    numbers = (each for each in node.iter_expressions() if isinstance(each, exp.Literal))
    return max((int(each.this) for each in numbers if each.is_int), default=0)


def _explain(node: exp.Expr, part: str) -> str:
    if isinstance(node, exp.Table):
        shown = node.sql(dialect="spark")[:60]
        return f"a view reads a table as a whole, at its newest version: remove {part} from {shown}"
    return f"{part.strip('_').upper()} is no part of a view's query"


def _show(node: exp.Expr) -> str:
    return "TRANSFORM … USING" if isinstance(node, exp.QueryTransform) else node.key.upper()
