"""Filters of a Spark statement that can be applied to a table before Spark reads it.

Only what is in WHERE, of one table alone, and means the same to Lance; and only where the rows
that it drops could not come back: not on the side of a join that is filled up with nulls, and not
when the statement reads the table twice.
"""

from collections import Counter
from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from penstock.sql.lance.from_spark import write_lance
from penstock.sql.resolving.resolve import Resolved
from penstock.sql.spark.types import Types

# Joins after which every row still has its own values of both sides, or of the first one.
OF_BOTH = {("", ""), ("", "INNER"), ("", "CROSS")}
OF_FIRST = {*OF_BOTH, ("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")}


def find_pushed(resolved: Resolved, types: Types) -> dict[str, list[exp.Expr]]:
    """Conditions by table that Lance can check; all of one table's hold."""
    found: dict[str, list[exp.Expr]] = {}
    places = list(_list_places(resolved))
    times = Counter(table for _, _, table in places)
    for scope, alias, table in places:
        query = scope.expression
        if times[table] > 1 or not isinstance(query, exp.Select) or not _keeps(query, alias):
            continue
        for condition in _list_conditions(query.args.get("where")):
            columns = list(condition.find_all(exp.Column))
            is_own = columns and all(column.table == alias for column in columns)
            if is_own and condition.find(exp.Query) is None and write_lance(condition, types):
                found.setdefault(table, []).append(condition)
    return found


def _list_places(resolved: Resolved) -> Iterator[tuple[Scope, str, str]]:
    """Where tables are read: the scope, what they are called there, and their own name."""
    for scope in resolved.scopes:
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name in resolved.stand_ins:
                yield scope, alias, resolved.stand_ins[source.name].identifier[0]


def _keeps(query: exp.Select, alias: str) -> bool:
    """Whether each row after the joins has a row of this table's own, with its values."""
    joins = query.args.get("joins") or []
    inside = [each for each in query.find_all(exp.Join) if each.parent_select is query]
    # Joins within parentheses have sides of their own.
    if query.args.get("laterals") or len(inside) != len(joins):
        return False
    if any(each.args.get("method") for each in joins):
        return False
    kinds = {(each.side.upper(), each.kind.upper()) for each in joins}
    first = query.args.get("from_")
    is_first = isinstance(first, exp.From) and first.alias_or_name == alias
    return kinds <= (OF_FIRST if is_first else OF_BOTH)


def _list_conditions(where: exp.Expr | None) -> list[exp.Expr]:
    if where is None:
        return []
    return list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
