"""Replace tables in a statement of Spark's dialect."""

from collections.abc import Mapping

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.guard import Refused, guard
from penstock.sql.parsing.parse import parse_query
from penstock.sql.parsing.references import identify_table
from penstock.sql.parsing.splice import rename_tables
from penstock.sql.results import Refusal, SqlProblem


def inline(
    sql: str,
    texts: Mapping[Identifier, str],
    namespace: Identifier,
    catalog: str | None,
) -> str | Refusal:
    """The statement with these texts (quoted names, or queries in brackets) in place of tables."""

    def name(table: exp.Table) -> str:
        return texts[identify_table(table, "spark", namespace, catalog)]

    def work() -> str:
        tree = parse_query(sql, "spark")
        if isinstance(tree, SqlProblem):
            raise Refused(tree.message, tree.line, tree.column)
        return rename_tables(sql, tree, "spark", name)

    return guard("naming the tables", work)
