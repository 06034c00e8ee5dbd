"""A statement before its tables are known: does it parse, what does it name, may a view use it."""

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.sql.lance import dialect as lance_dialect
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.references import find_tables, identify_table
from penstock.sql.resolving.calls import check_calls
from penstock.sql.results import Problem, Refusal
from penstock.sql.spark.text.door import write_statement
from penstock.sql.spark.text.plain import Plain

KNOWN = lance_dialect.LANCE

Named = tuple[Identifier, Identifier]


def read_statement(
    sql: str, dialect: str, namespace: Identifier, catalog: str | None
) -> tuple[Named, ...] | Refusal:
    """Each table that is named: as written, and as the dialect's rules have it in full."""
    return guard("reading the query", lambda: _read(sql, dialect, namespace, catalog))


def write_plain(sql: str) -> Plain | Refusal:
    """A statement in Spark's dialect as Spark may be given it, but for the names of its tables."""
    return guard("reading the query", lambda: write_statement(sql)[0])


def _parse(sql: str, dialect: str) -> exp.Query:
    tree = parse_query(sql, dialect)
    problem = tree if isinstance(tree, Problem) else check_calls(sql, tree, dialect)
    if isinstance(tree, Problem) or problem is not None:
        assert problem is not None
        raise Refused(problem.message, problem.line, problem.column)
    return tree


def _read(sql: str, dialect: str, namespace: Identifier, catalog: str | None) -> tuple[Named, ...]:
    tree = write_statement(sql)[1] if dialect == "spark" else _parse(sql, dialect)
    return tuple(
        dict.fromkeys(
            (
                tuple(part.name for part in table.parts),
                identify_table(table, dialect, namespace, catalog),
            )
            for table in find_tables(tree, dialect)
        )
    )
