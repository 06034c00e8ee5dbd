"""The modules of this package that need sqlglot, pyarrow or Lance, loaded by the first SQL."""

from typing import TYPE_CHECKING

from penstock.late import LateModule

if TYPE_CHECKING:
    from penstock.sql.definitions import (
        columns,
        define,
        iceberg_types,
        queries,
        requests,
        schemas,
        statements,
        untyped,
    )
    from penstock.sql.lance import over_rows
    from penstock.sql.parsing import check, references
    from penstock.sql.resolving import lineage, reads, renaming
    from penstock.sql.translating import translate
else:
    columns = LateModule("penstock.sql.definitions.columns")
    iceberg_types = LateModule("penstock.sql.definitions.iceberg_types")
    over_rows = LateModule("penstock.sql.lance.over_rows")
    check = LateModule("penstock.sql.parsing.check")
    define = LateModule("penstock.sql.definitions.define")
    lineage = LateModule("penstock.sql.resolving.lineage")
    queries = LateModule("penstock.sql.definitions.queries")
    reads = LateModule("penstock.sql.resolving.reads")
    references = LateModule("penstock.sql.parsing.references")
    renaming = LateModule("penstock.sql.resolving.renaming")
    requests = LateModule("penstock.sql.definitions.requests")
    schemas = LateModule("penstock.sql.definitions.schemas")
    statements = LateModule("penstock.sql.definitions.statements")
    translate = LateModule("penstock.sql.translating.translate")
    untyped = LateModule("penstock.sql.definitions.untyped")

__all__ = [
    "check",
    "columns",
    "define",
    "iceberg_types",
    "lineage",
    "over_rows",
    "queries",
    "reads",
    "references",
    "renaming",
    "requests",
    "schemas",
    "statements",
    "translate",
    "untyped",
]
