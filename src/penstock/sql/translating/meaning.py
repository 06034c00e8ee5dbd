"""Constructs that mean the same in two dialects once sqlglot has rewritten them.

A silently wrong translation is worse than none, so this lists what we vouch for: a node whose class
is neither in SAME nor in CHECKS is refused by name. Each check says why its node would differ
between these two dialects, or None.
"""

from collections.abc import Callable, Iterator

from sqlglot import exp

from penstock.sql.translating import values

VOUCHED = {"spark", "databricks", "trino", "presto", "snowflake", "bigquery", "duckdb", "postgres"}
FAMILIES = ({"spark", "databricks"}, {"trino", "presto"})

Check = Callable[[exp.Expr, str, str], str | None]

SAME: set[type[exp.Expr]] = {
    # the frame of a query
    exp.From, exp.Where, exp.Having, exp.Qualify, exp.Order, exp.Ordered, exp.Subquery, exp.CTE,
    exp.With, exp.Alias, exp.TableAlias, exp.Table, exp.Column, exp.Identifier, exp.Limit,
    exp.Offset, exp.Values, exp.Tuple, exp.Paren, exp.Star, exp.DataType, exp.DataTypeParam,
    exp.ColumnDef, exp.Var, exp.Hint,
    # values and choices
    exp.Literal, exp.Boolean, exp.Null, exp.And, exp.Or, exp.Not, exp.Exists, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Neg,
    # functions of one meaning
    exp.Abs, exp.Sqrt, exp.Ln, exp.Exp, exp.Sign, exp.CurrentDate, exp.CurrentTimestamp,
    # aggregates and windows
    exp.Sum, exp.Min, exp.Max, exp.AnyValue, exp.Stddev,
    exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.LogicalAnd, exp.LogicalOr,
    exp.Filter, exp.Window, exp.WindowSpec, exp.RowNumber, exp.Rank, exp.DenseRank,
    exp.PercentRank, exp.CumeDist, exp.Ntile, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue,
}  # fmt: skip


def find_difference(tree: exp.Expr, source: str, target: str) -> tuple[str, exp.Expr] | None:
    """The first construct that may mean something else in the target."""
    if source == target or any({source, target} <= family for family in FAMILIES):
        anonymous = (exp.Anonymous, exp.AnonymousAggFunc) if source != target else ()
        return next(((_unknown(node, target), node) for node in tree.find_all(*anonymous)), None)
    return next(_differences(tree, source, target), None)


def _differences(tree: exp.Expr, source: str, target: str) -> Iterator[tuple[str, exp.Expr]]:
    for node in tree.walk(prune=lambda node: isinstance(node, exp.Hint)):
        check = CHECKS.get(type(node))
        if check is not None:
            reason = check(node, source, target)
            if reason is not None:
                yield f"{reason} ({node.sql(dialect=source)[:60]})", node
        elif type(node) not in SAME:
            yield _unknown(node, target), node


def _unknown(node: exp.Expr, target: str) -> str:
    if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc):
        return f"function {node.name} is not known, so it can't be said what it is in {target}"
    if isinstance(node, exp.Func):
        return f"function {node.sql_name()} is not sure to mean the same in {target}"
    return f"{node.key.upper()} is not sure to mean the same in {target}"


def _check_select(node: exp.Expr, source: str, target: str) -> str | None:
    if node.args.get("kind") or node.args.get("operation_modifiers"):
        return "SELECT AS STRUCT or the like is not the same everywhere"
    return None


def _check_set(node: exp.Expr, source: str, target: str) -> str | None:
    if any(node.args.get(key) for key in ("by_name", "side", "kind", "on")):
        return "a union that pairs columns by name is not the same everywhere"
    return None


def _check_join(node: exp.Expr, source: str, target: str) -> str | None:
    if node.args.get("method"):
        return f"{node.args['method']} JOIN pairs rows by rules of its own"
    if node.args.get("side") and not node.args.get("on") and node.args.get("kind") != "CROSS":
        return "an outer join without a condition is not the same everywhere"
    return None


def _check_group(node: exp.Expr, source: str, target: str) -> str | None:
    if any(node.args.get(kind) for kind in ("all", "totals", "cube", "rollup", "grouping_sets")):
        return "GROUP BY is more than a list of expressions"
    return None


def _check_distinct(node: exp.Expr, source: str, target: str) -> str | None:
    if node.args.get("on") and {source, target} != {"postgres", "duckdb"}:
        return "DISTINCT ON keeps a row that depends on the engine"
    return None


def _check_count(node: exp.Expr, source: str, target: str) -> str | None:
    inner = node.this.expressions if isinstance(node.this, exp.Distinct) else node.expressions
    return "COUNT of several columns is not the same everywhere" if len(inner) > 1 else None


def _check_unnest(node: exp.Expr, source: str, target: str) -> str | None:
    plain = {"spark", "databricks", "trino", "presto", "duckdb"}
    if not {source, target} <= plain:
        return f"arrays become rows in another way in {target}"
    if node.args.get("outer") or node.args.get("offset"):
        return "rows for empty arrays, or positions, are not the same everywhere"
    array = node.this.this if isinstance(node, exp.Lateral) else node.expressions[0]
    if isinstance(node, exp.Lateral) and type(node.this) is not exp.Explode:
        return "only explode of one array becomes rows in the same way"
    if isinstance(node, exp.Unnest) and len(node.expressions) != 1:
        return "only one array at a time becomes rows in the same way"
    inner = array.type.expressions if array.type and array.type.is_type("array") else []
    if not inner or inner[0].is_type("struct", "unknown"):
        return "an array must be known to hold plain values to become rows in the same way"
    return None


def _inside_lateral(node: exp.Expr, source: str, target: str) -> str | None:
    if isinstance(node.parent, exp.Lateral):
        return None
    return "explode outside LATERAL VIEW makes rows that other engines don't"


def _check_fetch(node: exp.Expr, source: str, target: str) -> str | None:
    special = node.args.get("limit_options")
    return "FETCH PERCENT or WITH TIES is not the same everywhere" if special else None


CHECKS: dict[type[exp.Expr], Check] = {
    exp.Select: _check_select,
    exp.Union: _check_set,
    exp.Intersect: _check_set,
    exp.Except: _check_set,
    exp.Join: _check_join,
    exp.Group: _check_group,
    exp.Distinct: _check_distinct,
    exp.Count: _check_count,
    exp.Fetch: _check_fetch,
    exp.Lateral: _check_unnest,
    exp.Unnest: _check_unnest,
    exp.Explode: _inside_lateral,
    **values.CHECKS,
}
