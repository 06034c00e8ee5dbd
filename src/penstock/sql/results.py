"""Results of SQL analysis: frozen values, each with the plain form that HTTP sends."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.model.identifiers import Identifier

# A table's columns: name to type in sqlglot's words ("BIGINT", "TIMESTAMPTZ", "ARRAY<INT>"), or
# None where the table exists and its columns are unknown.
Columns = Mapping[str, str]
Tables = Mapping[Identifier, Columns | None]


@dataclass(frozen=True, slots=True)
class SqlProblem:
    """Why a statement is not one query of its dialect; lines and columns count from 1."""

    message: str
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"message": self.message, **_position(self.line, self.column)}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no translation or lineage, in a sentence that someone can act on."""

    reason: str
    line: int | None = None
    column: int | None = None

    def to_json(self) -> dict[str, Any]:
        return {"reason": self.reason, **_position(self.line, self.column)}


@dataclass(frozen=True, slots=True, order=True)
class SourceColumn:
    """One column of one table of the catalog."""

    table: Identifier
    column: str

    def to_json(self) -> dict[str, Any]:
        return {"table": list(self.table), "column": self.column}


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a query's result; the name is empty where each engine invents its own."""

    name: str
    sources: tuple[SourceColumn, ...]
    expression: str

    def to_json(self) -> dict[str, Any]:
        sources = [source.to_json() for source in self.sources]
        return {"name": self.name, "sources": sources, "expression": self.expression}


@dataclass(frozen=True, slots=True)
class Lineage:
    """The columns that feed each output; `filters` only decide which rows there are."""

    columns: tuple[OutputColumn, ...]
    filters: tuple[SourceColumn, ...]
    references: tuple[Identifier, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "filters": [source.to_json() for source in self.filters],
            "references": [list(reference) for reference in self.references],
        }


@dataclass(frozen=True, slots=True)
class Translation:
    """A statement of the target dialect that reads the same columns into the same outputs."""

    sql: str
    dialect: str
    references: tuple[Identifier, ...]
    output_columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "sql": self.sql,
            "dialect": self.dialect,
            "references": [list(reference) for reference in self.references],
            "output-columns": list(self.output_columns),
        }


def _position(line: int | None, column: int | None) -> dict[str, int]:
    if line is None or column is None:
        return {}
    return {"line": line, "column": column}
