"""Queries in Lance's SQL: filter, projection and limit over one table, as texts for Lance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.sql.lance.dialect import LANCE
from penstock.sql.parsing.flat_select import take_apart
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import locate, parse_query
from penstock.sql.parsing.splice import Edit, get_span
from penstock.sql.resolving.resolve import find_column
from penstock.sql.resolving.shape import check_limits
from penstock.sql.results import Refusal, SqlProblem

ELSE = 'send {"sql": …, "dialect": "spark"} for more'


@dataclass(frozen=True, slots=True)
class LanceOutput:
    name: str
    text: str
    # The field's path, if the output is just a field.
    path: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LanceQuery:
    outputs: tuple[LanceOutput, ...]
    filter: str | None = None
    limit: int | None = None


def read_lance_query(
    sql: str,
    columns: Sequence[str],
    hidden: Sequence[str],
    kept: Sequence[str] | None,
    texts: Mapping[str, str] | None = None,
) -> LanceQuery | Refusal:
    """Read a statement over a table of these columns; a star gives `kept` ones, none `hidden`.

    `texts` are written in place of columns.
    """
    return guard("reading the query", lambda: _read(sql, columns, hidden, kept, texts or {}))


def _read(
    sql: str,
    columns: Sequence[str],
    hidden: Sequence[str],
    kept: Sequence[str] | None,
    texts: Mapping[str, str],
) -> LanceQuery:
    tree = parse_query(sql, LANCE)
    if isinstance(tree, SqlProblem):
        raise Refused(tree.message, tree.line, tree.column)
    limit = check_limits(sql, tree)
    _check_shape(tree, limit)
    flat = take_apart(sql, tree, LANCE)
    if flat is None:
        raise Refused(f"the query is not a plain SELECT of one table; {ELSE}")
    names = _Names(sql, tree, columns, texts)
    outputs: list[LanceOutput] = []
    for piece in flat.outputs:
        if piece.node.is_star:
            if isinstance(piece.node, exp.Column) and piece.node.table.lower() != names.table:
                raise Refused(f"{piece.node.table} is not the table of the query")
            left_out = [each.name for each in piece.node.args.get("except_") or []]
            outputs += [
                LanceOutput(name, names.write(name), (name,))
                for name in columns
                if name not in hidden and name not in left_out and (kept is None or name in kept)
            ]
            continue
        path = names.find_path(piece.node)
        name = piece.name or (path[-1] if path else None)
        if name is None:
            raise Refused(
                f"column {len(outputs) + 1} of the result has no name; give it one with AS",
                *locate(sql, piece.start),
            )
        outputs.append(LanceOutput(name, flat.write(piece, names.edit), path))
    kept_filter = None if flat.filter is None else flat.write(flat.filter, names.edit)
    _check_names(outputs)
    return LanceQuery(tuple(outputs), kept_filter, limit)


def _check_shape(tree: exp.Query, limit: int | None) -> None:
    if not isinstance(tree, exp.Select):
        raise Refused(f"a query in Lance's SQL is one SELECT; {ELSE}")
    source = tree.args.get("from_")
    if not isinstance(source, exp.From) or not isinstance(source.this, exp.Table):
        raise Refused(f"a query in Lance's SQL reads one table; {ELSE}")
    refused = {
        "joins": "JOIN",
        "with_": "WITH",
        "group": "GROUP BY",
        "having": "HAVING",
        "distinct": "DISTINCT",
        "qualify": "QUALIFY",
        "windows": "WINDOW",
        "laterals": "LATERAL",
    }
    for key, word in refused.items():
        if tree.args.get(key):
            raise Refused(f"{word} is not offered in Lance's SQL; {ELSE}")
    if limit is not None and tree.args.get("order"):
        raise Refused(f"ORDER BY with LIMIT is not offered in Lance's SQL; {ELSE}")
    if any(node is not tree for node in tree.find_all(exp.Query)):
        raise Refused(f"a subquery is not offered in Lance's SQL; {ELSE}")
    for node in tree.find_all(exp.AggFunc, exp.Window):
        raise Refused(f"{node.key.upper()} is not offered in Lance's SQL; {ELSE}")


def _check_names(outputs: Sequence[LanceOutput]) -> None:
    seen: set[str] = set()
    for output in outputs:
        if output.name in seen:
            raise Refused(f"the result has two columns called {output.name}; rename one with AS")
        seen.add(output.name)


class _Names:
    """The columns of the one table, and their names in the text."""

    def __init__(
        self, sql: str, tree: exp.Query, columns: Sequence[str], texts: Mapping[str, str]
    ) -> None:
        self._sql = sql
        self._columns = list(columns)
        self._texts = texts
        table = tree.args["from_"].this
        self.table = (table.alias or table.name).lower()

    def find_path(self, node: exp.Expr) -> tuple[str, ...] | None:
        """The path of an expression that is just a column or a field of one."""
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Identifier):
            inner = self.find_path(node.this)
            return None if inner is None else (*inner, node.expression.name)
        if not isinstance(node, exp.Column) or node.is_star:
            return None
        parts = [part.name for part in self._list_parts(node)]
        return (self._find(node), *parts[1:])

    def edit(self, column: exp.Column) -> list[Edit]:
        """Back-quote every name for Lance; the table's own name is left out."""
        parts = self._list_parts(column)
        first, real = column.parts[0], self._find(column)
        edits = [Edit(*get_span(part), _quote(part.name)) for part in parts[1:]]
        start, end = get_span(parts[0])
        if parts[0] is not first:
            start = get_span(first)[0]
        # Deeper fields, as in "a"."b"."c"."d"."e".
        outer = column.parent
        while isinstance(outer, exp.Dot) and isinstance(outer.expression, exp.Identifier):
            edits.append(Edit(*get_span(outer.expression), _quote(outer.expression.name)))
            outer = outer.parent
        return [Edit(start, end, self.write(real)), *edits]

    def write(self, name: str) -> str:
        """A column in Lance's SQL."""
        return self._texts[name] if name in self._texts else _quote(name)

    def _list_parts(self, column: exp.Column) -> list[exp.Expr]:
        """The column and its fields, without the table."""
        parts = list(column.parts)
        own = len(parts) > 1 and parts[0].name.lower() == self.table
        if own and parts[0].name not in self._columns:
            parts = parts[1:]
        return parts

    def _find(self, column: exp.Column) -> str:
        part = self._list_parts(column)[0]
        if part.name in self._columns:
            return part.name
        alike = [name for name in self._columns if name.lower() == part.name.lower()]
        if len(alike) == 1 and not part.args.get("quoted"):
            return alike[0]
        start = part.meta.get("start")
        hint = find_column(part.name, iter(self._columns))
        where = () if start is None else locate(self._sql, start)
        raise Refused(f"column {part.name} does not exist{hint}", *where)


def _quote(name: str) -> str:
    if "`" in name:
        raise Refused(f"Lance's SQL can't name the column {name}; rename it")
    return f"`{name}`"
