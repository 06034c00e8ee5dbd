"""The tables of a SELECT as a tree: each is joined to one before it by columns that are equal.

Other conditions are left to Spark: without them, more rows belong together than need to, which
costs time and changes nothing. A subquery's tables are part of the tree: what it gives for a row of
the outer query depends only on the rows that are joined to it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp

from penstock.lance.columns.fields import show_path
from penstock.model.views import JoinKind, KeyPart, Occurrence
from penstock.sql.resolving.resolve import ResolvedStatement

# Types for which we know when Spark takes two values for equal.
INTEGERS = exp.DataType.SIGNED_INTEGER_TYPES
KEY_TYPES = {*INTEGERS, *exp.DataType.TEXT_TYPES, exp.DType.BOOLEAN,
             exp.DType.FLOAT, exp.DType.DOUBLE, exp.DType.DATE, exp.DType.DECIMAL,
             exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPNTZ}  # fmt: skip
KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("LEFT", "SEMI"): "filter",
    ("", "SEMI"): "filter",
    ("LEFT", "ANTI"): "filter",
    ("", "ANTI"): "filter",
}
IN_SUBQUERIES = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order"}


class Obstacle(Exception):
    """Why a query can't be followed by keys, for people."""


class _Place(NamedTuple):
    """A column by the number of its table."""

    table: int
    path: str
    type: exp.DataType


@dataclass(slots=True)
class _Table:
    """A table, and the equalities of columns by which it may be joined to others."""

    place: exp.Table
    join: JoinKind
    pairs: list[tuple[_Place, _Place]]
    # How many conditions its own ON has.
    conditions: int = 0


class JoinedTables:
    """The tables of one SELECT, with the columns that join them; raises Obstacle."""

    def __init__(self, select: exp.Select, resolved: ResolvedStatement) -> None:
        self._resolved = resolved
        self._tables: list[_Table] = []
        self._unlike = ""
        if select.find(exp.SetOperation):
            raise Obstacle("it has a subquery that is a union")
        self._names = self._add(select, {}, None)
        self._order = list(self._sort())
        places = {table: number for number, (table, _, _) in enumerate(self._order)}
        self.occurrences = tuple(
            self._describe(table, None if parent is None else places[parent], pairs)
            for table, parent, pairs in self._order
        )

    def find(self, node: exp.Expr) -> KeyPart | None:
        """The column that an expression of the SELECT is, if it can tell rows apart."""
        found = self._find(node, self._names)
        if found is None or found.type.this not in KEY_TYPES:
            return None
        numbers = [table for table, _, _ in self._order]
        return KeyPart(numbers.index(found.table), found.path)

    def list_core(self) -> list[int]:
        """The occurrences of which each joined row has exactly one row."""
        core: list[int] = []
        for number, each in enumerate(self.occurrences):
            if each.parent is None or (each.join == "inner" and each.parent in core):
                core.append(number)
        return core

    # Reading ---------------------------------------------------------------------------------

    def _add(
        self, select: exp.Select, outer: Mapping[str, int], compared: exp.Expr | None
    ) -> Mapping[str, int]:
        """Add the tables of a SELECT and of its subqueries; IN may have compared its output."""
        first = len(self._tables)
        if select.args.get("laterals"):
            raise Obstacle("it makes several rows from one by LATERAL VIEW")
        place = select.args.get("from_")
        joins = select.args.get("joins") or []
        shared: list[exp.Expr] = []
        own: list[list[exp.Expr]] = [[]]
        self._add_table(place.this if isinstance(place, exp.From) else None, "inner")
        for join in joins:
            kind, conditions = find_kind(join), _list_conditions(join.args.get("on"))
            self._add_table(join.this, kind)
            own.append([] if kind == "inner" else conditions)
            shared += conditions if kind == "inner" else []
        tables = range(first, len(self._tables))
        names = {**outer, **{self._tables[n].place.alias_or_name: n for n in tables}}
        where = select.args.get("where")
        conditions = _list_conditions(where.this if isinstance(where, exp.Where) else None)
        common = self._list_pairs([*_split_equal(shared), *_split_equal(conditions)], names, names)
        if compared is not None and len(select.selects) == 1:
            common += self._list_pairs([(compared, select.selects[0].unalias())], outer, names)
        for number, mine in zip(tables, own, strict=True):
            table = self._tables[number]
            is_inner = table.join == "inner"
            table.pairs = common if is_inner else self._list_pairs(_split_equal(mine), names, names)
            table.conditions = len(mine)
            if outer:
                table.join = "filter"
        for query in select.find_all(exp.Select):
            if query is not select and query.parent_select is select:
                _check_subquery(query)
                self._add(query, names, _find_compared(query, conditions))
        return names

    def _add_table(self, place: exp.Expr | None, join: JoinKind) -> None:
        if not isinstance(place, exp.Table) or place.name not in self._resolved.stand_ins:
            raise Obstacle("it reads more than tables and subqueries in FROM")
        if place.args.get("joins") or place.args.get("laterals"):
            raise Obstacle("it has joins in brackets")
        self._tables.append(_Table(place, join, []))

    def _list_pairs(
        self,
        equal: Iterable[tuple[exp.Expr, exp.Expr]],
        lefts: Mapping[str, int],
        rights: Mapping[str, int],
    ) -> list[tuple[_Place, _Place]]:
        """The pairs that are columns of two tables."""
        found = []
        for one, other in equal:
            left, right = self._find(one, lefts), self._find(other, rights)
            if left is None or right is None or left.table == right.table:
                continue
            if not _is_alike(left.type, right.type):
                self._unlike = f"only Spark can compare {left.path} with {right.path}"
                continue
            found.append((left, right))
        return found

    def _find(self, node: exp.Expr, names: Mapping[str, int]) -> _Place | None:
        column = node.unnest()
        if not isinstance(column, exp.Column) or column.table not in names:
            return None
        number = names[column.table]
        stand_in = self._resolved.stand_ins[self._tables[number].place.name]
        if column.name not in stand_in.columns or column.type is None:
            return None
        return _Place(number, show_path((stand_in.columns[column.name][0],)), column.type)

    # Linking ---------------------------------------------------------------------------------

    def _sort(self) -> Iterator[tuple[int, int | None, tuple[tuple[str, str], ...]]]:
        """Each table with the one that it is joined to and by which columns, parents first."""
        done = [0]
        core = {0}
        yield 0, None, ()
        left = list(range(1, len(self._tables)))
        while left:
            found = next(filter(None, (self._find_parent(n, done, core) for n in left)), None)
            if found is None:
                name = self._tables[left[0]].place.alias_or_name
                because = self._unlike or f"{name} is not joined by an equality of columns"
                raise Obstacle(because)
            child, parent, pairs = found
            left.remove(child)
            done.append(child)
            if parent in core and self._tables[child].join == "inner":
                core.add(child)
            yield child, parent, pairs

    def _find_parent(
        self, child: int, done: list[int], core: set[int]
    ) -> tuple[int, int, tuple[tuple[str, str], ...]] | None:
        pairs: dict[int, list[tuple[str, str]]] = {}
        for one, other in self._tables[child].pairs:
            mine, its = (one, other) if one.table == child else (other, one)
            if mine.table == child and its.table in done:
                pairs.setdefault(its.table, []).append((mine.path, its.path))
        if not pairs:
            return None
        parent = max(pairs, key=lambda each: (each in core, len(pairs[each])))
        return child, parent, tuple(pairs[parent])

    def _describe(
        self, number: int, parent: int | None, pairs: tuple[tuple[str, str], ...]
    ) -> Occurrence:
        table = self._tables[number]
        place = list(self._resolved.stand_ins).index(table.place.name)
        source = self._resolved.stand_ins[table.place.name].identifier[0]
        return Occurrence(
            name=f"{source}_{place + 1}",
            source=source,
            parent=parent,
            join=table.join,
            pairs=pairs,
            is_exact=table.conditions == len(pairs),
        )


def find_kind(join: exp.Join) -> JoinKind:
    """How a join treats the rows before it; raises Obstacle for those that keep later rows."""
    side, kind = join.side.upper(), join.kind.upper()
    if join.args.get("method") or join.args.get("using"):
        raise Obstacle("it has a NATURAL join")
    found = KINDS.get((side, kind))
    if found is None:
        raise Obstacle(f"a {side or kind} JOIN also keeps rows of tables that come later")
    return found


def _is_alike(one: exp.DataType, other: exp.DataType) -> bool:
    """Whether we know when Spark takes values of two types for equal: it widens integers."""
    if one.this in INTEGERS and other.this in INTEGERS:
        return True
    return one == other and one.this in KEY_TYPES


def _check_subquery(select: exp.Select) -> None:
    more = [key for key, value in select.args.items() if value and key not in IN_SUBQUERIES]
    if more or select.find(exp.Window):
        raise Obstacle("it has a subquery with more than tables, a filter and groups")


def _find_compared(inner: exp.Select, conditions: list[exp.Expr]) -> exp.Expr | None:
    """What a filter by IN compares with the output of a subquery."""
    for condition in conditions:
        query = condition.args.get("query") if isinstance(condition, exp.In) else None
        if query is not None and query.unnest() is inner:
            compared: exp.Expr = condition.this
            return compared
    return None


def _split_equal(conditions: list[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    return ((each.this, each.expression) for each in conditions if isinstance(each, exp.EQ))


def _list_conditions(condition: exp.Expr | None) -> list[exp.Expr]:
    """The conditions that AND joins."""
    if condition is None:
        return []
    inner = condition.unnest()
    if not isinstance(inner, exp.And):
        return [inner]
    return [*_list_conditions(inner.this), *_list_conditions(inner.expression)]
