"""Find the tables that a statement reads: names in FROM and JOIN that no WITH defines."""

from collections.abc import Iterator

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.languages import find_dialect, fold_name, ignores_case
from penstock.sql.parsing.parse import TooMuch, parse_query
from penstock.sql.results import SqlProblem


def find_references(
    sql: str, dialect: str, default_namespace: Identifier, default_catalog: str | None = None
) -> tuple[Identifier, ...]:
    """The tables that a statement reads, in order; none when it can't be judged."""
    found = judge_references(sql, dialect, default_namespace, default_catalog) or ()
    return tuple(dict.fromkeys(names[0] for names in found))


def judge_references(
    sql: str, dialect: str, default_namespace: Identifier, default_catalog: str | None = None
) -> tuple[tuple[Identifier, ...], ...] | None:
    """The tables that a statement reads, in order: for each, the names that it may stand for.

    None when it can't be judged.
    """
    known = find_dialect(dialect)
    if known is None:
        return None
    try:
        tree = parse_query(sql, known)
    except TooMuch:
        return None
    if isinstance(tree, SqlProblem):
        return None
    found = (
        list_candidates(
            tuple(part.name for part in table.parts),
            default_namespace,
            identify_table(table, known, default_namespace, default_catalog),
        )
        for table in find_tables(tree, known)
    )
    return tuple(dict.fromkeys(found))


def list_candidates(
    written: Identifier, namespace: Identifier, first: Identifier | None = None
) -> tuple[Identifier, ...]:
    """What a name may stand for, where the first that exists counts.

    After what the dialect's rules say: a single name is in the namespace, several parts are a full
    path; else the other way.
    """
    inside = (*namespace, *written)
    both = (inside, written) if len(written) == 1 else (written, inside)
    return tuple(dict.fromkeys((*([first] if first else []), *both)))


def find_tables(tree: exp.Query, dialect: str) -> Iterator[exp.Table]:
    """The nodes of a tree that name a table of the catalog."""
    named = [table for table in tree.find_all(exp.Table) if is_named(table)]
    for table in sorted(named, key=lambda table: table.parts[-1].meta.get("start", 0)):
        if not _is_defined_here(table, dialect):
            yield table


def is_named(table: exp.Table) -> bool:
    """Whether a node in FROM is a name, and not a call such as range(10)."""
    return bool(table.parts) and all(isinstance(part, exp.Identifier) for part in table.parts)


def identify_table(
    table: exp.Table,
    dialect: str,
    default_namespace: Identifier,
    default_catalog: str | None = None,
) -> Identifier:
    """The identifier that a name stands for, by the rules for a view's defaults."""
    parts = tuple(
        fold_name(part.name, bool(part.args.get("quoted")), dialect) for part in table.parts
    )
    if len(parts) == 1:
        return (*default_namespace, *parts)
    if len(parts) > 2 and default_catalog is not None and parts[0] == default_catalog:
        return parts[1:]
    return parts


def _is_defined_here(table: exp.Table, dialect: str) -> bool:
    """Whether a WITH in scope defines the name."""
    # A CTE sees those before it, and itself only if recursive: the first `a` of
    # WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) is a table, the second is not.
    if len(table.parts) != 1:
        return False
    name = _fold(table.this, dialect)
    inside: exp.Expr = table
    parent = table.parent
    while parent is not None:
        clause = parent.args.get("with_")
        if isinstance(clause, exp.With) and clause is not inside:
            if any(_fold(cte.args["alias"].this, dialect) == name for cte in clause.expressions):
                return True
        elif isinstance(parent, exp.With):
            for cte in parent.expressions:
                if cte is inside and not parent.args.get("recursive"):
                    break
                if _fold(cte.args["alias"].this, dialect) == name:
                    return True
                if cte is inside:
                    break
        inside, parent = parent, parent.parent
    return False


def _fold(identifier: exp.Identifier, dialect: str) -> str:
    name = identifier.name
    if ignores_case(dialect):
        return name.lower()
    return fold_name(name, bool(identifier.args.get("quoted")), dialect)
