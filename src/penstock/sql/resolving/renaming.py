"""Follow a renamed column or table in a statement's text; outputs keep their names.

Only names are edited, and the result is read again: it must mean what the text meant before, or it
is refused.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from penstock.model.identifiers import Identifier
from penstock.sql.lance import dialect as lance_dialect
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.languages import find_dialect
from penstock.sql.parsing.parse import CLOSE, OPEN, parse_query
from penstock.sql.parsing.references import find_tables, identify_table
from penstock.sql.parsing.splice import Edit, get_span, splice
from penstock.sql.resolving.resolve import ResolvedStatement, resolve, restore, select_first
from penstock.sql.results import Columns, Refusal, SqlProblem, Tables

CHANGED = "the text with the new name does not mean the same"


def rename_column(
    sql: str,
    dialect: str,
    schemas: Tables,
    namespace: Identifier,
    catalog: str | None,
    tables: Collection[Identifier],
    old: str,
    new: str,
    kept: Sequence[str] | None = None,
) -> str | Refusal:
    """The statement with another name for a column of some tables.

    `kept` are the outputs that a star stands for, where it does not stand for all columns.
    """

    def work() -> str:
        known = _find_dialect(dialect)
        before = _resolve(sql, known, schemas, namespace, catalog)
        edits, is_cut = _edit_columns(sql, known, before, tables, old, new, kept)
        edited = splice(sql, edits)
        renamed = {
            name: _rename_in(columns, old, new) if name in tables else columns
            for name, columns in schemas.items()
        }
        after = _resolve(edited, known, renamed, namespace, catalog)
        wanted = _rename_stand_ins(before, tables, old, new)
        # A star that was cut to what it stood for gives less than it would give now.
        if not is_cut and (
            _show(wanted, known) != _show(after, known)
            or before.output_columns != after.output_columns
        ):
            raise Refused(CHANGED)
        return edited

    return guard("renaming the column", work)


def rename_table(
    sql: str,
    dialect: str,
    namespace: Identifier,
    catalog: str | None,
    old: Identifier,
    new: Identifier,
    spellings: Collection[Identifier],
) -> str | Refusal:
    """The statement with another name for a table, under the same aliases.

    `spellings` are the names that mean it here: in another case, or with an engine's catalog.
    """

    def work() -> str:
        known = _find_dialect(dialect)
        tree = _parse(sql, known)
        edits, expected = list[Edit](), list[Identifier]()
        qualified: set[tuple[str, ...]] = set()
        for table in find_tables(tree, known):
            named = identify_table(table, known, namespace, catalog)
            if named not in spellings:
                expected.append(named)
                continue
            # The catalog that stands before it, if it is not the view's own.
            before = named[: len(named) - len(old)] if len(table.parts) > len(old) else ()
            expected.append((*before, *new))
            parts = list(new[-1:] if new[:-1] == namespace and len(table.parts) == 1 else new)
            if len(table.parts) > len(old):
                parts = [table.parts[0].name, *parts]
            alias = "" if table.alias else f" AS {_quote(table.parts[-1].name, known)}"
            text = ".".join(_quote(part, known) for part in parts) + alias
            edits.append(Edit(*get_span(*table.parts), text))
            if not table.alias and len(table.parts) > 1:
                qualified.add(tuple(part.name.lower() for part in table.parts[-2:]))
        # namespace.table.column becomes table.column, which is the alias now.
        edits += [
            Edit(get_span(*column.parts)[0], get_span(column.args["table"])[0], "")
            for column in tree.find_all(exp.Column)
            if column.db and (column.db.lower(), column.table.lower()) in qualified
        ]
        edited = splice(sql, edits)
        again = _parse(edited, known)
        found = [identify_table(t, known, namespace, catalog) for t in find_tables(again, known)]
        if [_fold(each) for each in found] != [_fold(each) for each in expected]:
            raise Refused(CHANGED)
        return edited

    return guard("renaming the table", work)


def _edit_columns(
    sql: str,
    dialect: str,
    resolved: ResolvedStatement,
    tables: Collection[Identifier],
    old: str,
    new: str,
    kept: Sequence[str] | None,
) -> tuple[list[Edit], bool]:
    """The edits, and whether a star was cut to what it stood for."""
    bare = _find_bare(_parse(sql, dialect))
    edits: dict[tuple[int, int], Edit] = {}
    is_starred = False
    for scope in resolved.scopes:
        for column in scope.columns:
            source = scope.sources.get(column.table)
            stand_in = (
                resolved.stand_ins.get(source.name) if isinstance(source, exp.Table) else None
            )
            if stand_in is None or stand_in.identifier not in tables:
                continue
            if stand_in.columns[column.name][0] != old:
                continue
            if "start" not in column.this.meta:
                is_starred = True
                continue
            start, end = get_span(column.this)
            alias = f" AS {_quote(bare[start], dialect)}" if start in bare else ""
            edits[start, end] = Edit(start, end, _quote(new, dialect) + alias)
    if is_starred:
        star = _expand_star(sql, dialect, resolved, tables, old, new, kept)
        edits[star.start, star.end] = star
    is_cut = kept is not None and not set(resolved.output_columns) <= set(kept)
    return list(edits.values()), is_starred and is_cut


def _find_bare(tree: exp.Query) -> dict[int, str]:
    """Where a column is an output under its own name, and that name."""
    found = {}
    for select in tree.find_all(exp.Select):
        for each in select.expressions:
            if isinstance(each, exp.Column) and isinstance(each.this, exp.Identifier):
                start = each.this.meta.get("start")
                if isinstance(start, int):
                    found[start] = each.name
    return found


def _expand_star(
    sql: str,
    dialect: str,
    resolved: ResolvedStatement,
    tables: Collection[Identifier],
    old: str,
    new: str,
    kept: Sequence[str] | None,
) -> Edit:
    """The columns that the one star of a plain SELECT stands for, written out."""
    tree = _parse(sql, dialect)
    if not isinstance(tree, exp.Select) or [type(e) for e in tree.expressions] != [exp.Star]:
        raise Refused("the column is read by a star, or by USING, which cannot name another one")
    star, depth = None, 0
    for token in Dialect.get_or_raise(dialect).tokenize(sql):
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if token.token_type == TokenType.STAR and depth == 0:
            star = star or token
    if star is None or tree.expressions[0].args.get("except_"):
        raise Refused("the column is read by a star, which cannot name another one")
    scope, texts = resolved.scopes[-1], []
    for select, name in zip(
        select_first(resolved.tree).selects, resolved.output_columns, strict=True
    ):
        column = select.unalias()
        source = scope.sources.get(column.table) if isinstance(column, exp.Column) else None
        stand_in = resolved.stand_ins.get(source.name) if isinstance(source, exp.Table) else None
        if stand_in is None or not isinstance(column, exp.Column):
            raise Refused("the column is read by a star over more than tables")
        if kept is not None and name not in kept:
            continue
        real = stand_in.columns[column.name][0]
        is_renamed = real == old and stand_in.identifier in tables
        shown = [column.table, new if is_renamed else real]
        text = ".".join(_quote(part, dialect) for part in shown)
        texts.append(f"{text} AS {_quote(name, dialect)}")
    return Edit(star.start, star.end + 1, ", ".join(texts))


def _rename_stand_ins(
    resolved: ResolvedStatement, tables: Collection[Identifier], old: str, new: str
) -> ResolvedStatement:
    changed = {
        name: replace(
            each,
            columns={
                seen: (new if real == old and each.identifier in tables else real, kind)
                for seen, (real, kind) in each.columns.items()
            },
        )
        for name, each in resolved.stand_ins.items()
    }
    return replace(resolved, stand_ins=changed)


def _show(resolved: ResolvedStatement, dialect: str) -> str:
    return restore(resolved).sql(dialect=dialect)


def _resolve(
    sql: str, dialect: str, schemas: Tables, namespace: Identifier, catalog: str | None
) -> ResolvedStatement:
    found = resolve(sql, dialect, schemas, namespace, catalog)
    if isinstance(found, Refusal):
        raise Refused(found.reason, found.line, found.column)
    return found


def _parse(sql: str, dialect: str) -> exp.Query:
    tree = parse_query(sql, dialect)
    if isinstance(tree, SqlProblem):
        raise Refused(tree.message, tree.line, tree.column)
    return tree


def _find_dialect(name: str) -> str:
    known = lance_dialect.LANCE if name == lance_dialect.LANCE else find_dialect(name)
    if known is None:
        raise Refused(f"the dialect {name[:100]} is not known here")
    return known


def _rename_in(columns: Columns | None, old: str, new: str) -> Columns | None:
    if columns is None:
        return None
    found: Mapping[str, str] = {new if n == old else n: kind for n, kind in columns.items()}
    return found


def _quote(name: str, dialect: str) -> str:
    return exp.to_identifier(name, quoted=True).sql(dialect=dialect)


def _fold(name: Identifier) -> Identifier:
    return tuple(part.lower() for part in name)
