"""Statements: SQL that is run once for whoever asked, in the form that runners get."""

from typing import Literal

from msgspec import Struct

from penstock.model.views import CheckedSql

# What a query is for: a view must give the same rows at every refresh, a statement runs once.
Use = Literal["view", "statement"]


class StatementSource(Struct, frozen=True, kw_only=True):
    """A table that a statement reads, at the version that it was read against."""

    id: str
    table: tuple[str, ...]
    # Its name in `Statement.sql`.
    name: str
    version: int
    # The paths of the columns that are read, in the table's order, which a star keeps.
    reads: tuple[str, ...]
    # In Lance's SQL: rows that do not match cannot affect the result.
    filter: str | None = None


class Statement(Struct, frozen=True, kw_only=True):
    """A statement for Spark."""

    sql: CheckedSql
    sources: tuple[StatementSource, ...]
    # Base64 of an Arrow schema: the types that columns have in their tables, by the place among the
    # outputs at which they are just selected.
    kept: str
