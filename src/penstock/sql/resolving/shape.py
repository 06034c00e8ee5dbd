"""The shape of a view: whether it can follow its source by rows, by groups, or only as a whole.

`find_shape` looks at a Spark statement twice: the tree as it was written, and the resolved one.
`Shape.keep` says what a definition keeps of the query, so that a refresh can follow it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from penstock.lance.columns.fields import show_path
from penstock.model.views import Column, Groups
from penstock.model.views import Shape as Kind
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import find_place
from penstock.sql.parsing.splice import quote
from penstock.sql.resolving.aliases import find_shadowing
from penstock.sql.resolving.calls import find_calls
from penstock.sql.resolving.resolve import ResolvedStatement
from penstock.sql.spark.functions import AGGREGATES, GENERATORS, ORDERLESS, WINDOWS

# Types for which we know when Spark puts two values into one group.
KEY_TYPES = {*exp.DataType.SIGNED_INTEGER_TYPES, *exp.DataType.TEXT_TYPES, exp.DType.BOOLEAN,
             exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DATE, exp.DType.DECIMAL,
             exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ}  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A column that rows are grouped by, and the output that shows it."""

    output: str
    column: str


@dataclass(frozen=True, slots=True)
class Shape:
    kind: Kind
    # Why it is no better shape.
    obstacle: str = ""
    limit: int | None = None
    keys: tuple[GroupKey, ...] = ()

    def keep(self, has_filter: bool, lance_filter: str | None) -> dict[str, Any]:
        """The fields of a `Definition` that are there for this shape only."""
        if self.kind != "groups":
            return {}
        keys = tuple(_to_column(key) for key in self.keys)
        return {"groups": Groups(keys=keys, lance_filter=lance_filter, has_filter=has_filter)}


def find_shape(sql: str, tree: exp.Query, resolved: ResolvedStatement) -> Shape:
    """The best shape that is certainly right; raises Refused for what no view can have."""
    limit = check_limits(sql, tree)
    calls = {call.name for call in find_calls(sql, "spark")}
    obstacle = next(_obstacles(tree, calls), "")
    ordered = isinstance(tree.args.get("order"), exp.Order)
    if not obstacle and limit is not None and ordered:
        obstacle = "which rows ORDER BY and LIMIT keep depends on all rows"
    if obstacle:
        found = Shape("whole", obstacle)
    elif isinstance(tree.args.get("group"), exp.Group) or calls & AGGREGATES:
        found = _find_groups(resolved, calls)
    else:
        return Shape("rows", limit=limit)
    if limit is None:
        return found
    if not ordered:
        raise Refused(
            "LIMIT keeps rows that nothing decides, so the view would differ between refreshes;"
            " add ORDER BY",
            *find_place(tree.args["limit"], sql),
        )
    return Shape("whole", found.obstacle or "ORDER BY and LIMIT compare all groups")


def _obstacles(tree: exp.Query, calls: set[str]) -> Iterator[str]:
    """What keeps a query from being followed by rows or groups, the simplest reason first."""
    if isinstance(tree, exp.SetOperation):
        yield f"it is a {tree.key.upper()} of queries"
    if not isinstance(tree, exp.Select):
        yield "it is not a plain SELECT"
        return
    if tree.args.get("with_"):
        yield "it has a WITH clause"
    if tree.args.get("joins"):
        yield "it joins tables"
    if tree.args.get("laterals"):
        yield "it makes several rows from one by LATERAL VIEW"
    place = tree.args.get("from_")
    table = place.this if isinstance(place, exp.From) else None
    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("laterals"):
        yield "it reads more than one table, or a subquery or a view"
    if tree.args.get("distinct"):
        yield "DISTINCT compares all rows"
    if any(node is not tree for node in tree.find_all(exp.Query)):
        yield "it has a subquery"
    if tree.find(exp.Window) is not None:
        yield "a window function's value depends on other rows"
    for names, text in (
        (WINDOWS, "makes a row's value depend on other rows"),
        (GENERATORS, "makes several rows from one"),
    ):
        for name in sorted(calls & names):
            yield f"{name} {text}"
    for clause in ("qualify", "windows", "sort", "cluster", "distribute", "kind"):
        if tree.args.get(clause):
            yield f"it has a {clause.upper()} clause"


def _find_groups(resolved: ResolvedStatement, calls: set[str]) -> Shape:
    tree = resolved.tree
    assert isinstance(tree, exp.Select)
    group = tree.args.get("group")
    if not isinstance(group, exp.Group):
        return Shape("whole", "an aggregate without GROUP BY is made of all rows")
    sets = (exp.Rollup, exp.Cube, exp.GroupingSets)
    more = any(value for key, value in group.args.items() if key != "expressions")
    if more or any(isinstance(each, sets) for each in group.expressions):
        return Shape("whole", "GROUP BY is more than a list of columns")
    _check_grouped(tree, group)
    if loose := sorted((calls & AGGREGATES) - ORDERLESS):
        return Shape("whole", f"{loose[0]} may depend on the order of rows")
    if shadowed := find_shadowing(resolved):
        return Shape("whole", f"{shadowed} is the name of a column and of another output")
    keys: list[GroupKey] = []
    for each in group.expressions:
        if not isinstance(each, exp.Column):
            return Shape("whole", "GROUP BY has an expression that is not a plain column")
        if each.type is None or each.type.this not in KEY_TYPES:
            return Shape("whole", f"groups by {each.name} can't be told apart by their values")
        found = [
            name
            for name, select in zip(resolved.output_columns, tree.selects, strict=True)
            if select.unalias() == each
        ]
        if not found:
            return Shape("whole", f"GROUP BY has {each.name}, which is not among the outputs")
        stand_in = next(iter(resolved.stand_ins.values()))
        keys.append(GroupKey(found[0], stand_in.columns[each.name][0]))
    return Shape("groups", keys=tuple(keys))


def _to_column(key: GroupKey) -> Column:
    path = show_path((key.column,))
    return Column(name=key.output, expression=quote(key.column), path=path, reads=(path,))


def _check_grouped(tree: exp.Select, group: exp.Group) -> None:
    grouped = list(group.expressions)
    for select in tree.selects:
        for node in select.walk(prune=lambda node: _is_aggregate(node) or node in grouped):
            if isinstance(node, exp.Column) and node not in grouped:
                raise Refused(
                    f"column {node.name} is neither grouped nor in an aggregate;"
                    " add it to GROUP BY, or use min or max of it"
                )


def _is_aggregate(node: exp.Expr) -> bool:
    named = isinstance(node, exp.Anonymous) and node.name.lower() in AGGREGATES
    # FILTER and WITHIN GROUP are around their aggregate.
    return named or isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def check_limits(sql: str, tree: exp.Query) -> int | None:
    """The statement's own LIMIT; refuses limits that make the result random."""
    for query in tree.find_all(exp.Query):
        if offset := query.args.get("offset"):
            raise Refused("OFFSET is not offered: a view has no order", *find_place(offset, sql))
        limited = query.args.get("limit")
        if limited and query is not tree and not query.args.get("order"):
            raise Refused(
                "LIMIT in a subquery keeps rows that nothing decides; add ORDER BY",
                *find_place(limited, sql),
            )
    limit = tree.args.get("limit")
    if limit is None:
        return None
    count = limit.args.get("expression") if isinstance(limit, exp.Limit) else None
    if isinstance(limit, exp.Limit) and count is not None and count.sql().upper() == "ALL":
        return None
    if not isinstance(count, exp.Literal) or not count.is_int or int(count.name) >= 2**62:
        raise Refused("LIMIT must be a whole number", *find_place(limit, sql))
    return int(count.name)
