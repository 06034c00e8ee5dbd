"""Merge WITH, subqueries in FROM and Iceberg views into one flat SELECT that means the same.

Only what filters, projects, renames or joins inside is merged; everything else is an Obstacle. The
result is a text like an author's: it is read and checked again as such. All names in it are
qualified, and each table has an alias of its own.

sqlglot's own `merge_subqueries` is not used: it gives 1, not NULL, for the missing rows of a
LEFT JOIN (SELECT id, 1 AS one ...), groups by constants as by places, and writes functions in its
own words.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.model.views import JoinKind
from penstock.sql.parsing.flat_select import SelectPiece
from penstock.sql.parsing.splice import Edit, get_span, quote, splice
from penstock.sql.resolving.calls import find_calls
from penstock.sql.resolving.clauses import (
    Clauses,
    Relation,
    cut_brackets,
    cut_select,
    cut_sets,
    cut_with,
    find_queries,
    parse,
)
from penstock.sql.resolving.joins import Obstacle, find_kind
from penstock.sql.resolving.keys import TIME_WINDOWS
from penstock.sql.resolving.visible import Found, Scope, Source, Value, make_column, write_value
from penstock.sql.results import Columns
from penstock.sql.spark.functions import AGGREGATES, GENERATORS, WINDOWS

# A WITH that reads the one before it twice doubles at each step.
MAX_TABLES = 64
MAX_CHARACTERS = 100_000
# Each layer is read again, and written into the next: this limits it to seconds.
MAX_WORK = 200_000
# Their rows, or values, are not those of single rows.
NOT_BY_ROW = AGGREGATES | GENERATORS | WINDOWS | TIME_WINDOWS
SHOWN = {"distinct": "DISTINCT", "group": "GROUP BY", "having": "HAVING"}
REMEDY = "make a view of it"
# What binds more tightly than AND.
TIGHT = (exp.Predicate, exp.And, exp.Paren)


@dataclass(frozen=True, slots=True)
class _Cte:
    sql: str
    columns: tuple[str, ...]
    # The queries that it can read.
    known: Mapping[str, "_Cte"]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table in the merged FROM."""

    text: str
    kind: JoinKind = "inner"
    words: str = ""
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Select:
    """A SELECT with what is in its FROM merged."""

    clauses: Clauses
    scope: Scope
    known: Mapping[str, _Cte]
    tables: tuple[_Table, ...]
    # Conditions in WHERE, and which of them have subqueries.
    filters: tuple[str, ...]
    has_queries: bool


def merge_queries(sql: str, tables: Mapping[str, Columns], names: Sequence[str]) -> str:
    """The statement without subqueries in FROM; `names` are those of its outputs.

    Raises Obstacle for what can't be merged, or not for sure.
    """
    tree = parse(sql)
    if tree.find(exp.Lambda):
        raise Obstacle(
            "it has subqueries, and a function with -> in it; make views of the subqueries"
        )
    taken = {each.name.lower() for each in tree.find_all(exp.Identifier)}
    merged = _Merger(tables, taken).write_statement(sql, names)
    if len(merged) > MAX_CHARACTERS:
        raise Obstacle("it is too long once its subqueries are merged")
    return merged


class _Merger:
    def __init__(self, tables: Mapping[str, Columns], taken: set[str]) -> None:
        self._tables = tables
        self._taken = taken
        self._aliases: set[str] = set()
        self._work = 0

    def write_statement(
        self, sql: str, names: Sequence[str], known: Mapping[str, _Cte] | None = None
    ) -> str:
        known, sql = self._read_with(cut_brackets(sql), known or {})
        parts = cut_sets(sql)
        if len(parts) == 1:
            return self._write(self._open(sql, known, None), names)
        # Queries, and between them what joins them.
        for place in range(0, len(parts), 2):
            made = self.write_statement(parts[place], names, known)
            parts[place] = made if len(cut_sets(made)) == 1 else f"({made})"
        return " ".join(parts)

    def _read_with(self, sql: str, known: Mapping[str, _Cte]) -> tuple[Mapping[str, _Cte], str]:
        self._count(sql)
        found, rest = cut_with(sql)
        for each in found:
            known = {**known, each.name.lower(): _Cte(each.sql, each.columns, known)}
        return known, rest

    # FROM ------------------------------------------------------------------------------------

    def _open(self, sql: str, known: Mapping[str, _Cte], outer: Scope | None) -> _Select:
        self._count(sql)
        clauses = cut_select(sql)
        scope = Scope(outer)
        tables: list[_Table] = []
        filters: list[str] = []
        has_queries = False
        for relation in clauses.relations:
            kind: JoinKind = "inner"
            if relation.join is not None:
                if relation.join.args.get("using"):
                    raise Obstacle("it joins subqueries by USING; write ON instead")
                kind = find_kind(relation.join)
            mine, found, more = self._add(relation, known, scope)
            has_queries |= more
            condition = relation.condition
            on = [] if condition is None else [self._write_filter(clauses, condition, scope, known)]
            if condition is not None:
                has_queries |= next(_list_queries(clauses, condition), None) is not None
            words = _get_words(relation.join, kind, bool(on))
            if kind == "inner" and (not tables or len(mine) > 1):
                tables += [replace(mine[0], words="" if not tables else "CROSS JOIN"), *mine[1:]]
                filters += [*on, *found]
            elif kind == "inner":
                tables.append(replace(mine[0], words=words, conditions=tuple(on)))
                filters += found
            elif len(mine) > 1 or more or not on:
                raise Obstacle(
                    f"{words} of subquery {relation.alias}, which has joins or subqueries; {REMEDY}"
                )
            else:
                tables.append(replace(mine[0], words=words, conditions=(*on, *found)))
            if kind == "left":
                scope.lose_made()
            elif kind == "filter":
                scope.hide()
        if clauses.where is not None:
            filters.append(self._write_filter(clauses, clauses.where, scope, known))
            has_queries |= next(_list_queries(clauses, clauses.where), None) is not None
        return _Select(clauses, scope, known, tuple(tables), tuple(filters), has_queries)

    def _add(
        self, relation: Relation, known: Mapping[str, _Cte], scope: Scope
    ) -> tuple[list[_Table], list[str], bool]:
        """Add a relation to a scope: its tables, its filters, and whether these have subqueries."""
        cte = known.get(relation.name.lower()) if relation.query is None else None
        if cte is not None:
            return self._add_query(relation, cte.sql, cte.columns, cte.known, scope)
        if relation.query is not None:
            return self._add_query(relation, relation.query, (), known, scope)
        columns = self._tables.get(relation.name)
        if columns is None or relation.columns:
            raise Obstacle(f"the columns of {relation.alias} are not known")
        if len(self._aliases) >= MAX_TABLES:
            raise Obstacle(f"it reads more than {MAX_TABLES} tables once subqueries are merged")
        alias = self._name(relation.alias)
        values = {name.lower(): (name, make_column(alias, name)) for name in columns}
        scope.sources.append(Source(relation.alias, values))
        scope.columns |= set(values)
        return [_Table(f"{quote(relation.name)} AS {quote(alias)}")], [], False

    def _add_query(
        self,
        relation: Relation,
        sql: str,
        columns: Sequence[str],
        known: Mapping[str, _Cte],
        scope: Scope,
    ) -> tuple[list[_Table], list[str], bool]:
        known, rest = self._read_with(sql, known)
        if len(cut_sets(rest)) > 1:
            raise Obstacle(f"subquery {relation.alias} is a union; {REMEDY}")
        inner = self._open(rest, known, None)
        _check_plain(inner.clauses, relation.alias)
        outputs = list(self._list_outputs(inner))
        for names in (columns, relation.columns):
            if names:
                outputs = [(name, value) for name, (_, value) in zip(names, outputs, strict=True)]
        values = {name.lower(): (name, value) for name, value in outputs if name}
        if len(values) != len(outputs):
            raise Obstacle(f"outputs of subquery {relation.alias} have no names, or one name twice")
        scope.sources.append(Source(relation.alias, values))
        scope.columns |= inner.scope.columns
        return list(inner.tables), list(inner.filters), inner.has_queries

    def _count(self, text: str) -> None:
        self._work += len(text)
        if self._work > MAX_WORK:
            raise Obstacle("its subqueries are too long, or in too many layers, to be merged")

    def _name(self, wanted: str) -> str:
        """An alias that no other table of the statement has."""
        name, number = wanted, 2
        while name.lower() in self._aliases or (number > 2 and name.lower() in self._taken):
            name, number = f"{wanted}_{number}", number + 1
        self._aliases.add(name.lower())
        return name

    # Outputs ---------------------------------------------------------------------------------

    def _list_outputs(self, select: _Select) -> Iterator[tuple[str, Value]]:
        """The name and the value of each output; a star gives the columns of the day."""
        made: dict[str, Value] = {}
        for piece in select.clauses.outputs:
            if piece.node.is_star:
                yield from select.scope.expand(piece.node)
                continue
            name = piece.name
            if name is None:
                name = piece.node.parts[-1].name if isinstance(piece.node, exp.Column) else ""
            value = self._make(select, piece, made)
            if piece.name is not None:
                made.setdefault(name.lower(), value)
            yield name, value

    def _make(self, select: _Select, piece: SelectPiece, made: Mapping[str, Value]) -> Value:
        column = piece.node if isinstance(piece.node, exp.Column) else None
        found = None if column is None else select.scope.find(column)
        if found is not None and column is not None and found.parts == len(column.parts):
            if found.is_outer and not found.value.is_column:
                raise Obstacle(f"{column.name} of a subquery is an expression that another reads")
            return found.value
        text = self._write_piece(select.clauses, piece, select.scope, select.known, made)
        return Value(
            text,
            is_path=found is not None and found.value.is_path,
            has_columns=piece.node.find(exp.Column) is not None,
            has_query=piece.node.find(exp.Query) is not None,
        )

    # Text ------------------------------------------------------------------------------------

    def _write(self, select: _Select, names: Sequence[str] | None) -> str:
        """The merged SELECT; its outputs get these names, or keep those that are written."""
        clauses = select.clauses
        outputs = list(self._list_outputs(select))
        given = [name for name, _ in outputs] if names is None else names
        texts = [
            f"{_use(value)} AS {quote(name)}" if name else _use(value)
            for name, (_, value) in zip(given, outputs, strict=True)
        ]
        parts = ["SELECT DISTINCT" if clauses.tree.args.get("distinct") else "SELECT"]
        parts += [", ".join(texts), "FROM", _write_tables(select.tables)]
        if select.filters:
            parts += ["WHERE", " AND ".join(select.filters)]
        named = {name.lower() for name in given}
        for words, piece in (("GROUP BY", clauses.group), ("HAVING", clauses.having)):
            if piece is not None:
                parts += [words, self._write_grouped(select, piece, named)]
        return " ".join(parts)

    def _write_grouped(self, select: _Select, piece: SelectPiece, outputs: set[str]) -> str:
        """GROUP BY or HAVING, which may name outputs."""
        kept = outputs - select.scope.columns
        in_group = piece is select.clauses.group
        return self._write_piece(
            select.clauses, piece, select.scope, select.known, {}, kept, in_group
        )

    def _write_piece(
        self,
        clauses: Clauses,
        piece: SelectPiece,
        scope: Scope,
        known: Mapping[str, _Cte],
        made: Mapping[str, Value],
        kept: Collection[str] = (),
        in_group: bool = False,
    ) -> str:
        """The text of a piece: names written out, subqueries merged.

        `made` are outputs that it may name, `kept` names that stay as they are.
        """
        queries = list(_list_queries(clauses, piece))
        edits = []
        for start, end in queries:
            inner, rest = self._read_with(clauses.sql[start:end], known)
            if len(cut_sets(rest)) > 1:
                raise Obstacle("one of its subqueries is a union; make a view of that one")
            edits.append(Edit(start, end, self._write(self._open(rest, inner, scope), None)))
        for column in piece.node.find_all(exp.Column):
            start, _ = get_span(*column.parts)
            if any(first <= start < last for first, last in queries):
                continue
            found = scope.find(column)
            if found is None and len(column.parts) == 1:
                name = column.name.lower()
                if name in kept:
                    continue
                if name in made and scope.outer is None:
                    found = Found(made[name], 1, False)
            if found is None:
                raise Obstacle(f"{column.sql()} can't be told from the columns of subqueries")
            _, end = get_span(*column.parts[: found.parts])
            edits.append(Edit(start, end, write_value(column.name, found, in_group)))
        text = splice(clauses.sql, edits, piece.start, piece.end)
        self._count(text)
        return text

    def _write_filter(
        self, clauses: Clauses, piece: SelectPiece, scope: Scope, known: Mapping[str, _Cte]
    ) -> str:
        """A condition that AND can join to others."""
        text = self._write_piece(clauses, piece, scope, known, {})
        return text if isinstance(piece.node, TIGHT) else f"({text})"


def _use(value: Value) -> str:
    if value.obstacle:
        raise Obstacle(value.obstacle)
    return value.text


def _write_tables(tables: Sequence[_Table]) -> str:
    texts = []
    for each in tables:
        on = f" ON {' AND '.join(each.conditions)}" if each.conditions else ""
        texts.append(f"{each.words} {each.text}{on}".strip())
    return " ".join(texts)


def _get_words(join: exp.Join | None, kind: JoinKind, has_condition: bool) -> str:
    if join is None:
        return ""
    if kind == "inner":
        return "JOIN" if has_condition else "CROSS JOIN"
    return " ".join(filter(None, (join.side.upper(), join.kind.upper(), "JOIN")))


def _check_plain(clauses: Clauses, alias: str) -> None:
    """Raise Obstacle for a subquery whose rows are not rows of its tables."""
    for key in ("distinct", "group", "having"):
        if clauses.tree.args.get(key):
            raise Obstacle(f"subquery {alias} has {SHOWN[key]}; {REMEDY}")
    text = clauses.sql[clauses.outputs[0].start : clauses.outputs[-1].whole_end]
    called = sorted({call.name for call in find_calls(text, "spark")} & NOT_BY_ROW)
    if called or any(each.node.find(exp.Window) for each in clauses.outputs):
        raise Obstacle(f"subquery {alias} has {called[0] if called else 'a window'}; {REMEDY}")


def _list_queries(clauses: Clauses, piece: SelectPiece) -> Iterator[tuple[int, int]]:
    return find_queries(clauses.sql, piece.start, piece.end)
