"""Dialects that sqlglot knows, by the names that views use."""

from sqlglot.dialects.dialect import Dialect, Dialects

ALIASES = {
    "athena": "trino",  # its queries are Trino's; sqlglot's own Athena only adds Hive's DDL
    "mssql": "tsql",
    "postgresql": "postgres",
    "prestodb": "presto",
    "prestosql": "trino",
    "sparksql": "spark",
    "spark-sql": "spark",
    "sqlserver": "tsql",
}
# Languages that sqlglot reads or writes in part, and that are not SQL.
NOT_SQL = {"", "athena", "dax", "prql", "solr", "tableau"}
KNOWN = ({dialect.value for dialect in Dialects} | {"singlestore"}) - NOT_SQL

# These keep a name's case, but compare names case-insensitively.
KEEPS_CASE = {"spark", "spark2", "databricks", "hive", "duckdb", "bigquery"}
LOWERS_ALL = {"trino", "presto"}


def find_dialect(name: str) -> str | None:
    """sqlglot's name for the dialect of a view's representation."""
    lowered = name.strip().lower()
    known = ALIASES.get(lowered, lowered)
    return known if known in KNOWN else None


def fold_name(name: str, quoted: bool, dialect: str) -> str:
    """A table's name as an engine of this dialect passes it to a catalog."""
    if dialect in LOWERS_ALL:
        return name.lower()
    if quoted or dialect in KEEPS_CASE:
        return name
    match Dialect.get_or_raise(dialect).normalization_strategy.value:
        case "UPPERCASE" | "CASE_INSENSITIVE_UPPERCASE":
            return name.upper()
        case "CASE_SENSITIVE":
            return name
        case _:
            return name.lower()


def ignores_case(dialect: str) -> bool:
    """Whether names that differ only in case are one name, quoted or not."""
    strategy: str = Dialect.get_or_raise(dialect).normalization_strategy.value
    return strategy.startswith("CASE_INSENSITIVE")
