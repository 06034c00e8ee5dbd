"""Stand-ins: one-part names that replace tables while a statement is resolved."""

from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.languages import fold_name, ignores_case
from penstock.sql.parsing.references import find_tables, identify_table, is_named
from penstock.sql.results import Columns, Tables

# A prefix that no person uses for a table, alias or CTE.
PREFIX = "penstock__table__"


@dataclass(frozen=True, slots=True)
class StandIn:
    """A table as the statement sees it: `columns` maps seen name -> (the catalog's name, type)."""

    identifier: Identifier
    parts: tuple[str, ...]
    columns: dict[str, tuple[str, str]]


def spell_outputs(tree: exp.Query, dialect: str) -> None:
    """Record each output's name in its engine, because resolving changes the case."""
    first: exp.Expr = tree
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    if not isinstance(first, exp.Select):
        return
    named = [_name_output(select) for select in first.expressions]
    first.set("expressions", named)
    for select in named:
        alias = select.args.get("alias")
        if isinstance(alias, exp.Identifier):
            quoted = bool(alias.args.get("quoted"))
            alias.meta["spelling"] = fold_name(alias.name, quoted, dialect)


def _name_output(select: exp.Expr) -> exp.Expr:
    """A bare column with its name as an explicit alias."""
    if select.is_star or not isinstance(select, exp.Column | exp.Dot):
        return select
    name = select.parts[-1] if isinstance(select, exp.Column) else select.expression
    return exp.alias_(select, name.copy()) if isinstance(name, exp.Identifier) else select


def drop_qualifiers(tree: exp.Query, dialect: str) -> None:
    """Turn namespace.table.column into table.column where the statement reads that table."""
    read = {
        tuple(part.name.lower() for part in table.parts[-2:]): None
        for table in find_tables(tree, dialect)
        if not table.alias and len(table.parts) > 1
    }
    for column in list(tree.find_all(exp.Column)):
        if column.db and (column.db.lower(), column.table.lower()) in read:
            column.set("db", None)
            column.set("catalog", None)


def replace_tables(
    tree: exp.Query,
    dialect: str,
    tables: Tables,
    default_namespace: Identifier,
    default_catalog: str | None,
) -> dict[str, StandIn] | tuple[str, int] | str:
    """Replace the tables by stand-ins; or say which one is missing, and where it is named."""
    stand_ins: dict[str, StandIn] = {}
    names = _Names.of(tree)
    for place in tree.find_all(exp.Table):
        if not is_named(place):
            return f"the statement calls a table function: {place.sql(dialect=dialect)[:60]}"
        if place.alias_column_names:
            # sqlglot would take the new names for columns of the table.
            return (
                f"{place.alias} renames the columns of its table; rename them with AS in SELECT",
                place.parts[0].meta.get("start", 0),
            )
    for place in list(find_tables(tree, dialect)):
        at = place.parts[0].meta.get("start", 0)
        identifier = identify_table(place, dialect, default_namespace, default_catalog)
        found = _find_table(identifier, place, dialect, tables)
        if isinstance(found, str):
            return found, at
        columns = tables[found]
        if columns is None:
            return f"the columns of table {'.'.join(found)} are not known", at
        seen = names.see(columns, dialect)
        if isinstance(seen, str):
            return (
                f"table {'.'.join(found)} has columns that {dialect} can't tell apart: {seen}",
                at,
            )
        name = f"{PREFIX}{len(stand_ins)}"
        written = len(place.parts)
        parts = found[-written:]
        if written > len(found) and default_catalog is not None:
            parts = (default_catalog, *found)
        stand_ins[name] = StandIn(found, parts, seen)
        _stand_in(place, name)
    return stand_ins


def _stand_in(place: exp.Table, name: str) -> None:
    if not place.alias:
        place.set("alias", exp.TableAlias(this=place.parts[-1].copy()))
    place.set("this", exp.to_identifier(name, quoted=True))
    place.set("db", None)
    place.set("catalog", None)


def _find_table(
    identifier: Identifier, place: exp.Table, dialect: str, tables: Tables
) -> Identifier | str:
    """The table of that name: exactly, or the only one that differs in case, where case may."""
    if identifier in tables:
        return identifier
    lowered = tuple(part.lower() for part in identifier)
    alike = [each for each in tables if tuple(part.lower() for part in each) == lowered]
    loose = ignores_case(dialect) or not any(part.args.get("quoted") for part in place.parts)
    if loose and len(alike) == 1:
        return alike[0]
    shown = ".".join(identifier)
    if alike:
        return f"table {shown} is not in the catalog; {'.'.join(alike[0])} is spelled otherwise"
    return f"table {shown} is not in the catalog"


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that a statement uses, folded by its dialect's rules, quoted and not."""

    quoted: frozenset[str]
    plain: frozenset[str]

    @staticmethod
    def of(tree: exp.Query) -> "_Names":
        quoted: set[str] = set()
        plain: set[str] = set()
        for identifier in tree.find_all(exp.Identifier):
            (quoted if identifier.args.get("quoted") else plain).add(identifier.name)
        return _Names(frozenset(quoted), frozenset(plain))

    def see(self, columns: Columns, dialect: str) -> dict[str, tuple[str, str]] | str:
        """The columns under the names that the statement may use."""
        engine = Dialect.get_or_raise(dialect)
        folded = {
            engine.normalize_identifier(exp.to_identifier(name, quoted=False)).name
            for name in self.plain
        }
        unquoted = {name.lower(): name for name in folded}
        seen: dict[str, tuple[str, str]] = {}
        for name, type in columns.items():
            if ignores_case(dialect):
                key = name.lower()
            elif name in self.quoted or name in folded or name.lower() not in unquoted:
                key = name
            else:
                # An unquoted name can only mean this column: no other differs from it just in case.
                loose = unquoted[name.lower()]
                key = name if loose in columns else loose
            if key in seen:
                return f"{seen[key][0]} and {name}"
            seen[key] = (name, type)
        return seen
