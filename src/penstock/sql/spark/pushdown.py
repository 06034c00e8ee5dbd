"""Pushdown: filters of a Spark statement that Lance can apply before Spark reads the table.

Only conditions in WHERE, on one table alone, that mean the same to Lance; and only where dropped
rows could not come back: not on the null-filled side of a join. A table that is read in several
places is filtered by what all of them ask.

That the null-filled side has no filter is also what finding touched keys builds on
(`_find_lone` of `jobs/refresh/keys/touched.py`).
"""

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from penstock.sql.lance.from_spark import write_lance
from penstock.sql.resolving.resolve import ResolvedStatement
from penstock.sql.spark.types import Types

# Joins after which every row still has its own values of both sides, or of the first one.
OF_BOTH = {("", ""), ("", "INNER"), ("", "CROSS")}
OF_FIRST = {*OF_BOTH, ("LEFT", ""), ("LEFT", "OUTER"), ("LEFT", "SEMI"), ("LEFT", "ANTI")}


def find_pushed(resolved: ResolvedStatement, types: Types) -> dict[str, list[exp.Expr]]:
    """Conditions by table that Lance can check; those of a table are joined by AND."""
    asked: dict[str, list[dict[str, exp.Expr]]] = {}
    for scope, alias, table in _list_places(resolved):
        asked.setdefault(table, []).append(_list_asked(scope.expression, alias, types))
    common = {
        table: [
            condition for text, condition in first.items() if all(text in other for other in others)
        ]
        for table, (first, *others) in asked.items()
    }
    return {table: conditions for table, conditions in common.items() if conditions}


def _list_asked(query: exp.Expr, alias: str, types: Types) -> dict[str, exp.Expr]:
    """The conditions on one place where a table is read, by their text for Lance."""
    found: dict[str, exp.Expr] = {}
    if not isinstance(query, exp.Select) or not _keeps(query, alias):
        return found
    for condition in list_conditions(query.args.get("where")):
        columns = list(condition.find_all(exp.Column))
        is_own = columns and all(column.table == alias for column in columns)
        if is_own and condition.find(exp.Query) is None:
            text = write_lance(condition, types)
            if text:
                found[text] = condition
    return found


def _list_places(resolved: ResolvedStatement) -> Iterator[tuple[Scope, str, str]]:
    """Where tables are read: the scope, their alias there, and their name."""
    for scope in resolved.scopes:
        for alias, source in scope.sources.items():
            if isinstance(source, exp.Table) and source.name in resolved.stand_ins:
                yield scope, alias, resolved.stand_ins[source.name].identifier[0]


def _keeps(query: exp.Select, alias: str) -> bool:
    """Whether each row after the joins comes from a row of this table, with its values."""
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


def list_conditions(where: exp.Expr | None) -> list[exp.Expr]:
    """The conditions of a WHERE that AND joins."""
    if where is None:
        return []
    return list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
