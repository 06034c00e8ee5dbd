"""Queries of Spark's dialect over known tables: their outputs, what they read, their shape.

Each table has one plain name here; `sql/spark/text/checked_sql.py` makes the text for Spark.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.model.views import NO_SQL, CheckedSql, Keys
from penstock.sql.lance.from_spark import write_lance
from penstock.sql.parsing.flat_select import take_apart
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.splice import Edit, quote, splice
from penstock.sql.parsing.texts import SparkTexts
from penstock.sql.resolving.clauses import cut_with
from penstock.sql.resolving.joins import Obstacle
from penstock.sql.resolving.reads import find_reads
from penstock.sql.resolving.resolve import ResolvedStatement, find_column, resolve, select_first
from penstock.sql.resolving.shape import Shape, find_shape
from penstock.sql.resolving.statement_shape import find_statement_shape
from penstock.sql.results import Columns, Refusal, SqlProblem
from penstock.sql.spark.keyed import write_keys
from penstock.sql.spark.pushdown import find_pushed, list_conditions
from penstock.sql.spark.text.checked_sql import (
    check_expression,
    check_path,
    check_query,
    find_bare_clock,
)
from penstock.sql.spark.types import Plain, Types, to_plain
from penstock.sql.statements import Use

# Expanded stars and names make a statement longer than its author's.
MAX_WORDS = 10_000
CLOCK_NODES = (exp.CurrentDate, exp.CurrentTimestamp, exp.Localtimestamp)


@dataclass(frozen=True, slots=True)
class SparkOutput:
    """A column of the result; `text` and `lance` are set for a query over rows."""

    name: str
    # None when not known for sure.
    type: Plain | None
    # The table and column (or field), if the output is just that.
    table: str | None = None
    path: tuple[str, ...] | None = None
    # In Spark's SQL, over the columns of the table.
    text: CheckedSql = NO_SQL
    # In Lance's, when it means the same there.
    lance: str | None = None
    # The columns that it is made of, for a query over one table.
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SparkQuery:
    sql: CheckedSql
    shape: Shape
    outputs: tuple[SparkOutput, ...]
    # The columns that are read, by table.
    reads: dict[str, tuple[str, ...]]
    filter: CheckedSql | None = None
    lance_filter: str | None = None
    filter_reads: tuple[str, ...] = ()
    # Those conditions of the filter that read the clock, in Lance's SQL, each with what it reads;
    # None when one of them is not Lance's.
    clock_conditions: tuple[tuple[str, tuple[str, ...]], ...] | None = ()
    # For the shape "keys".
    keys: Keys | None = None
    # As it was given, with its star expanded.
    text: str = ""
    # By table: conditions that relevant rows meet, in Lance's SQL, each with what it reads.
    pushed: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)


def read_spark_query(
    sql: str, tables: Mapping[str, Columns], kept: Sequence[str] | None, use: Use = "view"
) -> SparkQuery | Refusal:
    """Read a query over tables of these names; `kept` are the outputs that a star gives."""
    return guard("reading the query", lambda: _read(sql, tables, kept, use))


def write_path(path: Sequence[str]) -> CheckedSql | Refusal:
    """A column, or a field of one, in Spark's SQL."""
    return guard("naming a column", lambda: check_path(path))


def list_outputs(sql: str, tables: Mapping[str, Columns]) -> dict[str, str] | Refusal:
    """The names and types of a Spark statement's result, in the form that `resolve` takes."""

    def work() -> dict[str, str]:
        resolved = _resolve(sql, tables)
        types = Types(resolved).get_outputs()
        return {
            name: "UNKNOWN" if kind is None else kind.sql()
            for name, kind in zip(resolved.output_columns, types, strict=True)
        }

    return guard("reading the query", work)


def _resolve(sql: str, tables: Mapping[str, Columns]) -> ResolvedStatement:
    known: dict[Identifier, Columns | None] = {(name,): each for name, each in tables.items()}
    found = resolve(sql, "spark", known, (), max_words=MAX_WORDS)
    if isinstance(found, Refusal):
        raise Refused(found.reason)
    return found


def _parse(sql: str) -> exp.Query:
    tree = parse_query(sql, "spark", MAX_WORDS)
    if isinstance(tree, SqlProblem):
        raise Refused(tree.message)
    return tree


def _read(
    sql: str, tables: Mapping[str, Columns], kept: Sequence[str] | None, use: Use
) -> SparkQuery:
    sql = _expand_stars(sql, _resolve(sql, tables), kept)
    resolved = _resolve(sql, tables)
    if use == "view":
        _check_names(resolved)
    _check_reads(resolved)
    tree = _parse(sql)
    _check_clock(sql, tree, tables)
    find = find_shape if use == "view" else find_statement_shape
    shape = find(sql, tree, resolved)
    types = Types(resolved)
    _check_fields(resolved, types)
    selects = [select.unalias() for select in select_first(resolved.tree).selects]
    alone = isinstance(resolved.tree, exp.Select)
    outputs = tuple(
        SparkOutput(name, to_plain(kind), *(types.find_path(select) if alone else ()))
        for name, kind, select in zip(
            resolved.output_columns, types.get_outputs(), selects, strict=True
        )
    )
    reads = {table[0]: columns for table, columns in find_reads(resolved).items()}
    found = SparkQuery(check_query(sql, tables), shape, outputs, reads, text=sql)
    # Patterns and strings with a backslash are left to Spark.
    plain = "\\" not in sql
    if shape.keys is not None:
        made = write_keys(sql, shape.keys, tables)
        found = _give_up(found, made) if isinstance(made, str) else replace(found, keys=made)
    if shape.kind != "rows" and plain:
        found = replace(found, pushed=_write_pushed(resolved, types))
    is_alone = len(resolved.stand_ins) == 1 and found.shape.kind != "whole"
    flat = take_apart(sql, tree, "spark") if is_alone else None
    if flat is None:
        obstacle = "its text can't be taken apart into outputs and a filter"
        return found if shape.kind != "rows" else _give_up(found, obstacle)
    texts = SparkTexts(flat, next(iter(resolved.stand_ins.values())).columns)
    where = resolved.tree.args.get("where")
    if where is not None and flat.filter is not None:
        lance = write_lance(where.this, types) if plain else None
        found = replace(
            found,
            filter=check_expression(texts.write(flat.filter)),
            lance_filter=lance,
            filter_reads=_list_columns(where, types),
        )
        conditions = _write_clock(where, types) if plain else None
        found = replace(found, clock_conditions=conditions)
    if shape.kind != "rows":
        return found
    return replace(
        found,
        outputs=tuple(
            replace(
                output,
                text=check_expression(texts.write(piece)),
                lance=write_lance(select, types) if plain else None,
                reads=_list_columns(select, types),
            )
            for output, piece, select in zip(outputs, flat.outputs, selects, strict=True)
        ),
    )


def _write_pushed(
    resolved: ResolvedStatement, types: Types
) -> dict[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    return {
        table: tuple(
            (written, _list_columns(each, types))
            for each in conditions
            if (written := write_lance(each, types)) is not None
        )
        for table, conditions in find_pushed(resolved, types).items()
    }


def _write_clock(where: exp.Expr, types: Types) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    found: list[tuple[str, tuple[str, ...]]] = []
    for each in list_conditions(where):
        if each.find(*CLOCK_NODES) is None:
            continue
        written = write_lance(each, types)
        if written is None:
            return None
        found.append((written, _list_columns(each, types)))
    return tuple(found)


def _check_clock(sql: str, tree: exp.Query, tables: Mapping[str, Columns]) -> None:
    """Refuse a word that is the clock, or a column or output of that name, as engines choose."""
    names = {name.lower() for columns in tables.values() for name in columns}
    names |= {each.name.lower() for each in tree.find_all(exp.Identifier)}
    for word in sorted(find_bare_clock(sql)):
        if word in names:
            raise Refused(
                f"{word} may be a column or the current time; write `{word}` in back-quotes for"
                f" the column, {word}() for the time"
            )


def _give_up(found: SparkQuery, obstacle: str) -> SparkQuery:
    if found.shape.limit is not None:
        raise Refused("LIMIT without ORDER BY is offered for a plain SELECT only; remove hints")
    return replace(found, shape=Shape("whole", obstacle))


def _expand_stars(sql: str, resolved: ResolvedStatement, kept: Sequence[str] | None) -> str:
    """The text with its star expanded to its columns, or to those it stood for (`kept`)."""
    # What WITH defines stays as it is.
    try:
        rest = cut_with(sql)[1]
    except Obstacle:
        return sql
    head = len(sql) - len(rest)
    flat = take_apart(rest, _parse(rest), "spark")
    stars = [] if flat is None else [each for each in flat.outputs if each.node.is_star]
    if flat is None or len(stars) != 1 or not isinstance(resolved.tree, exp.Select):
        return sql
    star = flat.outputs.index(stars[0])
    width = len(resolved.tree.selects) - len(flat.outputs) + 1
    columns = []
    for select, name in list(zip(resolved.tree.selects, resolved.output_columns, strict=True))[
        star : star + width
    ]:
        column = select.unalias()
        if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star) or not name:
            return sql
        if kept is None or name in kept:
            columns.append(f"{quote(column.table)}.{quote(name)}")
    if not columns:
        raise Refused("* stands for no column that the view has; list the columns")
    edit = Edit(head + stars[0].start, head + stars[0].end, ", ".join(columns))
    return splice(sql, [edit])


def _check_names(resolved: ResolvedStatement) -> None:
    for place, name in enumerate(resolved.output_columns, 1):
        if not name:
            raise Refused(f"column {place} of the result has no name; give it one with AS")
    twice = Counter(name.lower() for name in resolved.output_columns).most_common(1)
    if twice and twice[0][1] > 1:
        raise Refused(f"the result has two columns called {twice[0][0]}; rename one with AS")


def _check_reads(resolved: ResolvedStatement) -> None:
    """Refuse expressions that read columns without naming them: these would not be loaded."""
    for star in resolved.tree.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            raise Refused("a * inside an expression can't be followed; list the columns")


def _check_fields(resolved: ResolvedStatement, types: Types) -> None:
    """Refuse a field that a struct does not have."""
    for dot in resolved.tree.find_all(exp.Dot):
        outer = types.get(dot.this)
        if outer is None or not outer.is_type(exp.DType.STRUCT):
            continue
        names = [field.name for field in outer.expressions]
        wanted = dot.expression.name
        if wanted.lower() not in [name.lower() for name in names]:
            hint = find_column(wanted, iter(names))
            raise Refused(f"{dot.this.sql(dialect='spark')} has no field {wanted}{hint}")


def _list_columns(node: exp.Expr, types: Types) -> tuple[str, ...]:
    paths = (types.find_path(column)[1] for column in node.find_all(exp.Column))
    return tuple(sorted({path[0] for path in paths if path}))
