"""Parse statements before their tables are known: names, and whether a view may use them."""

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.sql.lance import dialect as lance_dialect
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.references import find_tables, identify_table
from penstock.sql.resolving.calls import check_calls
from penstock.sql.results import Refusal, SqlProblem
from penstock.sql.spark.text.checked_sql import write_statement
from penstock.sql.spark.text.plain import PlainStatement

KNOWN = lance_dialect.LANCE

Named = tuple[Identifier, Identifier]


def read_statement(
    sql: str, dialect: str, namespace: Identifier, catalog: str | None
) -> tuple[Named, ...] | Refusal:
    """Each named table: as written, and in full by the dialect's rules."""
    return guard("reading the query", lambda: _read(sql, dialect, namespace, catalog))


def write_plain(sql: str) -> PlainStatement | Refusal:
    """A statement in Spark's dialect in the form for Spark, except for table names."""
    return guard("reading the query", lambda: write_statement(sql)[0])


def _parse(sql: str, dialect: str) -> exp.Query:
    tree = parse_query(sql, dialect)
    problem = tree if isinstance(tree, SqlProblem) else check_calls(sql, tree, dialect)
    if isinstance(tree, SqlProblem) or problem is not None:
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
