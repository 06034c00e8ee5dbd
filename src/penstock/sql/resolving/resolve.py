"""Resolve every table and column of a statement in the catalog.

Tables are first replaced by stand-ins with one plain name each, so that deep namespaces, the case
of a name, or a CTE of the same name can't mislead sqlglot; `restore` puts the names back as the
catalog spells them.
"""

import difflib
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.optimizer.qualify_columns import qualify_columns
from sqlglot.optimizer.qualify_tables import qualify_tables
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import Scope, traverse_scope
from sqlglot.schema import MappingSchema

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import locate, parse_query
from penstock.sql.resolving.bounds import check_growth
from penstock.sql.resolving.standins import StandIn, drop_qualifiers, replace_tables, spell_outputs
from penstock.sql.results import Refusal, SqlProblem, Tables

# Resolving takes quadratic time: this limits it to seconds.
MAX_WORDS = 2_000
# sqlglot's name for a column without one.
GENERATED = re.compile(r"_col_\d+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ResolvedStatement:
    """A qualified tree over stand-ins; `scopes` end with the statement's own."""

    tree: exp.Query
    scopes: tuple[Scope, ...]
    stand_ins: dict[str, StandIn]
    references: tuple[Identifier, ...]
    output_columns: tuple[str, ...]


def resolve(
    sql: str,
    dialect: str,
    tables: Tables,
    default_namespace: Identifier,
    default_catalog: str | None = None,
    max_words: int = MAX_WORDS,
) -> ResolvedStatement | Refusal:
    """Resolve every table and column of a statement, or name the first that is missing."""
    return guard(
        "resolving the statement",
        lambda: _resolve(sql, dialect, tables, default_namespace, default_catalog, max_words),
    )


def _resolve(
    sql: str,
    dialect: str,
    tables: Tables,
    default_namespace: Identifier,
    default_catalog: str | None,
    max_words: int,
) -> ResolvedStatement:
    tree = parse_query(sql, dialect, max_words)
    if isinstance(tree, SqlProblem):
        reason = f"the statement does not parse: {tree.message}"
        raise Refused(reason, tree.line, tree.column)
    spell_outputs(tree, dialect)
    drop_qualifiers(tree, dialect)
    found = replace_tables(tree, dialect, tables, default_namespace, default_catalog)
    if isinstance(found, str):
        raise Refused(found)
    if isinstance(found, tuple):
        raise Refused(found[0], *locate(sql, found[1]))
    schema = MappingSchema(
        {
            name: {key: _build_type(type).copy() for key, (_, type) in stand_in.columns.items()}
            for name, stand_in in found.items()
        },
        dialect=dialect,
        normalize=False,
    )
    normalize_identifiers(tree, dialect=dialect, store_original_column_identifiers=True)
    qualify_tables(tree, dialect=dialect)
    check_growth(tree, found)
    try:
        qualify_columns(tree, schema, allow_partial_qualification=True, dialect=dialect)
    except OptimizeError as error:
        raise Refused(f"the columns can't be resolved: {error}") from error
    scopes = tuple(traverse_scope(tree))
    if not scopes:
        raise Refused("the statement has a shape that can't be resolved")
    for scope in scopes:
        _check_columns(scope, schema, found, sql)
    annotate_types(tree, schema=schema, dialect=Dialect.get_or_raise(dialect))
    references = tuple(dict.fromkeys(stand_in.identifier for stand_in in found.values()))
    return ResolvedStatement(
        tree, scopes, found, references, tuple(_output_names(tree, found, scopes))
    )


def restore(resolved: ResolvedStatement) -> exp.Query:
    """The tree with the catalog's names back in place, every name quoted."""
    tree = resolved.tree.copy()
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table) and id(column) not in seen:
                seen.add(id(column))
                real = resolved.stand_ins[source.name].columns[column.name][0]
                column.this.set("this", real)
    for table in list(tree.find_all(exp.Table)):
        stand_in = resolved.stand_ins.get(table.name)
        if stand_in is not None and len(table.parts) == 1:
            parts = [exp.to_identifier(part, quoted=True) for part in stand_in.parts]
            table.replace(
                exp.Table(
                    **{**table.args, **dict.fromkeys(("db", "catalog")), **_table_parts(parts)}
                )
            )
    for select, name in zip(select_first(tree).selects, resolved.output_columns, strict=True):
        if isinstance(select, exp.Alias) and name:
            _rename_output(tree, select, name)
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("quoted", True)
    return tree


def find_column(name: str, names: Iterator[str]) -> str:
    """The most similar name, as the end of a sentence."""
    by_lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return f"; near names: {', '.join(by_lower[each] for each in near)}" if near else ""


@functools.cache
def _build_type(text: str) -> exp.DataType:
    try:
        return exp.DataType.build(text)
    except SqlglotError:
        return exp.DataType.build("UNKNOWN")


def _check_columns(
    scope: Scope, schema: MappingSchema, stand_ins: dict[str, StandIn], sql: str
) -> None:
    """Refuse a column of this scope that is in no source, in several, or in one twice."""
    if isinstance(scope.expression, exp.SetOperation) and scope.expression.args.get("by_name"):
        raise Refused("a union BY NAME can't be resolved; list the columns in one order")
    for place in scope.find_all(exp.Pivot, exp.MatchRecognize, exp.TableColumn):
        raise Refused(f"{place.key.upper()} can't be resolved; write it out as plain columns")
    if not isinstance(scope.expression, exp.Select):
        return
    resolver = Resolver(scope, schema)
    sources = list(scope.selected_sources)
    local = {id(column) for column in scope.local_columns}
    for column in scope.columns:
        where = _place(column, sql)
        if column.is_star or isinstance(column.this, exp.Star):
            raise Refused("a * can't be expanded; list the columns", *where)
        if column.table in scope.sources:
            names = list(resolver.get_source_columns(column.table))
            _check_in(column, names, _show_source(scope, column.table, stand_ins), where)
        elif column.table and (scope.is_root or id(column) in local):
            raise Refused(f"{column.table} is no table or alias of the statement", *where)
        elif not column.table and not _is_alias(column, scope):
            holders = [name for name in sources if column.name in resolver.get_source_columns(name)]
            if len(holders) > 1:
                among = ", ".join(holders)
                raise Refused(f"column {column.name} is ambiguous: it is in {among}", *where)
            every = (name for source in sources for name in resolver.get_source_columns(source))
            hint = find_column(column.name, every)
            raise Refused(f"column {column.name} does not exist{hint}", *where)


def _check_in(
    column: exp.Column, names: list[str], source: str, where: tuple[int, int] | tuple[()]
) -> None:
    count = names.count(column.name)
    if count > 1:
        raise Refused(f"column {column.name} is ambiguous: {source} has it twice", *where)
    if count == 0 and names:
        hint = find_column(column.name, iter(names))
        raise Refused(f"column {column.name} of {source} does not exist{hint}", *where)
    if count == 0:
        raise Refused(f"the columns of {source} are not known", *where)


def _is_alias(column: exp.Column, scope: Scope) -> bool:
    """Whether a name in ORDER BY is one of the outputs."""
    ordered = column.find_ancestor(exp.Order, exp.Select)
    return isinstance(ordered, exp.Order) and column.name in _names(scope.expression)


def _names(query: exp.Expr) -> list[str]:
    return query.named_selects if isinstance(query, exp.Query) else []


def _place(column: exp.Column, sql: str) -> tuple[int, int] | tuple[()]:
    start = column.this.meta.get("start")
    return locate(sql, start) if isinstance(start, int) else ()


def _show_source(scope: Scope, name: str, stand_ins: dict[str, StandIn]) -> str:
    source = scope.sources[name]
    if isinstance(source, exp.Table) and source.name in stand_ins:
        return ".".join(stand_ins[source.name].identifier)
    return name


def _output_names(
    tree: exp.Query, stand_ins: dict[str, StandIn], scopes: tuple[Scope, ...]
) -> Iterator[str]:
    """The names of the result: as written, or as the catalog spells what a star stood for."""
    first = select_first(tree)
    scope = next((scope for scope in scopes if scope.expression is first), scopes[-1])
    for select in first.selects:
        alias = select.args.get("alias")
        written = alias.meta.get("spelling") if isinstance(alias, exp.Identifier) else None
        column = select.unalias()
        if isinstance(written, str):
            yield written
        elif isinstance(column, exp.Column) and select.alias_or_name == column.name:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table) and source.name in stand_ins:
                yield stand_ins[source.name].columns[column.name][0]
            else:
                yield "" if GENERATED.fullmatch(column.name) else column.name
        elif isinstance(column, exp.Coalesce) and isinstance(column.this, exp.Column):
            yield select.alias_or_name  # a USING column, merged by expanding the star
        else:
            yield ""


def select_first(tree: exp.Expr) -> exp.Select:
    """The query that names a union's columns."""
    while not isinstance(tree, exp.Select):
        if not isinstance(tree, exp.SetOperation | exp.Subquery):
            raise Refused("the statement has a shape that can't be resolved")
        tree = tree.this
    return tree


def _rename_output(tree: exp.Query, select: exp.Alias, name: str) -> None:
    old = select.alias
    select.args["alias"].set("this", name)
    order = tree.args.get("order")
    for column in order.find_all(exp.Column) if isinstance(order, exp.Order) else ():
        if not column.table and column.name == old:
            column.this.set("this", name)


def _table_parts(parts: list[exp.Identifier]) -> dict[str, exp.Expr]:
    if len(parts) <= 3:
        return dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
    return {"this": exp.Dot.build(parts[2:]), "db": parts[1], "catalog": parts[0]}
