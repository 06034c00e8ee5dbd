"""The shape of a view: whether it can follow its sources by rows, by keys, or only as a whole.

`find_shape` looks at a Spark statement twice: the tree as it was written, and the resolved one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from penstock.model.views import Shape as Kind
from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import find_place
from penstock.sql.resolving.calls import find_calls
from penstock.sql.resolving.joins import Obstacle
from penstock.sql.resolving.keys import SETS, FoundKeys, find_keys, is_aggregate, is_windowed
from penstock.sql.resolving.resolve import ResolvedStatement
from penstock.sql.spark.functions import AGGREGATES, GENERATORS, WINDOWS

# What is looked at on its own, below an output.
INNER = (exp.Query, exp.Window)


@dataclass(frozen=True, slots=True)
class Shape:
    kind: Kind
    # Why it is no better shape.
    obstacle: str = ""
    limit: int | None = None
    # For the shape "keys".
    keys: FoundKeys | None = None


def find_shape(sql: str, tree: exp.Query, resolved: ResolvedStatement) -> Shape:
    """The best shape that is certainly right; raises Refused for what no view can have."""
    limit = check_limits(sql, tree)
    calls = [call.name for call in find_calls(sql, "spark")]
    ordered = isinstance(tree.args.get("order"), exp.Order)
    is_by_row = next(_list_others(tree, set(calls)), None) is None
    if is_by_row and not (limit is not None and ordered):
        return Shape("rows", limit=limit)
    if limit is not None and not ordered:
        raise Refused(
            "LIMIT keeps rows that nothing decides, so the view would differ between refreshes;"
            " add ORDER BY",
            *find_place(tree.args["limit"], sql),
        )
    _check_groups(resolved)
    if limit is not None:
        return Shape("whole", "which rows ORDER BY and LIMIT keep depends on all rows")
    if tree.args.get("with_"):
        return Shape("whole", "it has a WITH clause")
    try:
        return Shape("keys", keys=find_keys(resolved, calls))
    except Obstacle as error:
        return Shape("whole", str(error))


def _list_others(tree: exp.Query, calls: set[str]) -> Iterator[str]:
    """What makes a query more than the filtered rows of one table."""
    if not isinstance(tree, exp.Select):
        yield "a union"
        return
    more = ("with_", "joins", "laterals", "distinct", "group", "having", "qualify", "windows",
            "sort", "cluster", "distribute", "kind")  # fmt: skip
    yield from (clause for clause in more if tree.args.get(clause))
    place = tree.args.get("from_")
    table = place.this if isinstance(place, exp.From) else None
    if not isinstance(table, exp.Table) or table.args.get("joins") or table.args.get("laterals"):
        yield "another table"
    if any(node is not tree for node in tree.find_all(exp.Query)):
        yield "a subquery"
    if tree.find(exp.Window) is not None:
        yield "a window"
    yield from sorted(calls & (AGGREGATES | GENERATORS | WINDOWS))


def _check_groups(resolved: ResolvedStatement) -> None:
    """Refuse columns of one table that are neither grouped nor in an aggregate."""
    for scope in resolved.scopes:
        if isinstance(scope.expression, exp.Select) and not scope.expression.args.get("group"):
            _check_alone(scope.expression, set(scope.selected_sources))
    group = resolved.tree.args.get("group")
    if isinstance(resolved.tree, exp.Select) and isinstance(group, exp.Group):
        more = any(value for key, value in group.args.items() if key != "expressions")
        more = more or any(isinstance(each, SETS) for each in group.expressions)
        if len(resolved.stand_ins) == 1 and not more:
            _check_grouped(resolved.tree, group)


def _check_grouped(tree: exp.Select, group: exp.Group) -> None:
    grouped = [each.unnest() for each in group.expressions]
    for select in tree.selects:
        for node in select.walk(prune=lambda node: _is_aggregate(node) or node.unnest() in grouped):
            if isinstance(node, exp.Column) and node not in grouped:
                raise Refused(
                    f"column {node.name} is neither grouped nor in an aggregate;"
                    " add it to GROUP BY, or use min or max of it"
                )


def _check_alone(select: exp.Select, tables: set[str]) -> None:
    """Refuse columns beside an aggregate where nothing is grouped, so that all rows become one."""
    having = select.args.get("having")
    places = [*select.selects, *([having.this] if isinstance(having, exp.Having) else [])]
    if not any(
        isinstance(node, exp.Func) and is_aggregate(node) and not is_windowed(node)
        for place in places
        for node in place.walk(prune=lambda node: isinstance(node, exp.Query))
    ):
        return
    for output in select.selects:
        # Columns of an OVER, and those of tables further out, are another matter.
        for node in output.walk(prune=lambda node: isinstance(node, INNER) or _is_aggregate(node)):
            if isinstance(node, exp.Column) and node.table in tables:
                raise Refused(
                    f"column {node.name} is beside an aggregate and not grouped;"
                    f" add GROUP BY {node.name}, or use min or max of it"
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
