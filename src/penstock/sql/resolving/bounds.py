"""Limit how much a statement grows when its stars and aliases are expanded.

WITH a AS (SELECT x.*, y.* FROM t x, t y), b AS (SELECT x.*, y.* FROM a x, a y) ... doubles at
each step, and so does SELECT a + a AS b, b + b AS c, c + c AS d ...: short texts, endless trees.
"""

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from penstock.sql.parsing.parse import TooMuch
from penstock.sql.resolving.standins import StandIn

MAX_COLUMNS = 5_000
MAX_NODES = 20_000


def check_growth(tree: exp.Query, stand_ins: dict[str, StandIn]) -> None:
    """Raise TooMuch for a statement that would grow too large."""
    widths: dict[int, int] = {}
    for scope in traverse_scope(tree):
        widths[id(scope)] = width = _width(scope, widths, stand_ins)
        if sum(widths.values()) > MAX_COLUMNS or width > MAX_COLUMNS:
            raise TooMuch(f"the statement's stars stand for more than {MAX_COLUMNS} columns")
    for select in tree.find_all(exp.Select):
        if _expanded(select) > MAX_NODES:
            raise TooMuch("the statement's aliases refer to each other too often")


def _width(scope: Scope, widths: dict[int, int], stand_ins: dict[str, StandIn]) -> int:
    query = scope.expression
    if isinstance(query, exp.SetOperation) and scope.set_operation_scopes:
        return widths.get(id(scope.set_operation_scopes[0]), 1)
    if not isinstance(query, exp.Select):
        return len(query.alias_column_names) if isinstance(query, exp.UDTF) else 1
    sources = {
        name: _source_width(source, widths, stand_ins)
        for name, (_, source) in scope.selected_sources.items()
    }
    width = 0
    for select in query.selects:
        if isinstance(select, exp.Star):
            width += sum(sources.values())
        elif isinstance(select, exp.Column) and select.is_star:
            width += sources.get(select.table, 1)
        else:
            width += 1
    return width


def _source_width(
    source: exp.Table | Scope, widths: dict[int, int], stand_ins: dict[str, StandIn]
) -> int:
    if isinstance(source, Scope):
        return widths.get(id(source), 1)
    return len(stand_ins[source.name].columns) if source.name in stand_ins else 1


def _expanded(select: exp.Select) -> int:
    """The nodes of a SELECT with its aliases expanded."""
    sizes: dict[str, int] = {}
    total = 0
    for projection in select.expressions:
        size = 0
        for node in projection.walk():
            size += 1
            if isinstance(node, exp.Column) and not node.table:
                size += sizes.get(node.name, 0)
        total += size
        if isinstance(projection, exp.Alias):
            sizes[projection.alias] = size
        if total > MAX_NODES:
            return total
    for clause in ("where", "group", "having", "qualify"):
        place = select.args.get(clause)
        for column in place.find_all(exp.Column) if isinstance(place, exp.Expr) else ():
            total += sizes.get(column.name, 0)
    return total
