"""Queries whose types only Spark knows: what it is asked, and how its answer is used."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import encode_schema
from penstock.model.identifiers import Identifier
from penstock.model.views import CheckedSql
from penstock.sql.definitions.outputs import list_own_names
from penstock.sql.definitions.parsed_query import ParsedQuery
from penstock.sql.definitions.requests import SourceTable, ViewRequest
from penstock.sql.definitions.spark import read_spark
from penstock.sql.definitions.tables import get_known


@dataclass(frozen=True, slots=True)
class UntypedQuery:
    """A query for Spark's analyzer, and the columns that it reads; no rows are needed."""

    sql: CheckedSql
    # Base64 of an Arrow schema, by the table's name in `sql`.
    schemas: Mapping[str, str]
    # What each of these names stands for, for messages.
    names: Mapping[str, Identifier]


def read_untyped(
    request: ViewRequest, tables: Mapping[Identifier, SourceTable]
) -> UntypedQuery | None:
    """What to ask Spark about a query; None for one in Lance's SQL, which Lance types."""
    if request.query.language != "spark":
        return None
    kept = list_own_names(request.created) if request.kind == "query" else None
    found = read_spark(request.query, get_known(request.query, tables), kept)
    return UntypedQuery(
        found.sql,
        {name: _encode_read(table, reads) for table, name, reads in found.tables},
        {name: table.identifier for table, name, _ in found.tables},
    )


def take_types(found: ParsedQuery, typed: pa.Schema | None) -> ParsedQuery:
    """The query with Spark's types for the outputs whose type was not known."""
    if typed is None:
        return found
    # Spark's names ignore case.
    kinds = {field.name.lower(): field.type for field in typed}
    outputs = (
        output if output.type is not None else replace(output, type=kinds.get(output.name.lower()))
        for output in found.outputs
    )
    return replace(found, outputs=tuple(outputs))


def _encode_read(table: SourceTable, reads: tuple[str, ...]) -> str:
    columns = dict.fromkeys(parse_path(path)[0] for path in reads)
    return encode_schema(pa.schema([table.schema.field(name) for name in columns]))
