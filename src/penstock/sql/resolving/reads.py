"""The columns that a statement reads of each table, wherever in it they are read.

Lineage leaves out what no output needs, such as a column of an unused CTE; a statement fails
without it all the same.
"""

from sqlglot import exp

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.languages import find_dialect
from penstock.sql.resolving.resolve import ResolvedStatement, resolve
from penstock.sql.results import Refusal, Tables

Reads = dict[Identifier, tuple[str, ...]]


def list_reads(
    sql: str,
    dialect: str,
    schemas: Tables,
    default_namespace: Identifier,
    default_catalog: str | None = None,
) -> Reads | Refusal:
    """The columns that a statement reads, by table; a star reads those that there are now."""
    known = find_dialect(dialect)
    if known is None:
        return Refusal(f"the dialect {dialect} is not known here")
    found = resolve(sql, known, schemas, default_namespace, default_catalog)
    return found if isinstance(found, Refusal) else find_reads(found)


def find_reads(resolved: ResolvedStatement) -> Reads:
    """The columns that a resolved statement reads, by table."""
    reads: dict[Identifier, dict[str, None]] = {
        stand_in.identifier: {} for stand_in in resolved.stand_ins.values()
    }
    for scope in resolved.scopes:
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if isinstance(source, exp.Table) and source.name in resolved.stand_ins:
                stand_in = resolved.stand_ins[source.name]
                reads[stand_in.identifier][stand_in.columns[column.name][0]] = None
    return {name: tuple(sorted(columns)) for name, columns in reads.items()}
