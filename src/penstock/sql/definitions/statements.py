"""Read a statement against the current tables: for Lance alone, or for Spark."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from msgspec import structs

from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.columns.schemas import encode_schema
from penstock.model.identifiers import Identifier
from penstock.model.moments import at_moment, rows_at, sql_at
from penstock.model.views import Rows
from penstock.sql.definitions.lance import read_lance
from penstock.sql.definitions.parsed_query import ParsedQuery, make_rows
from penstock.sql.definitions.requests import Query, SourceTable
from penstock.sql.definitions.spark import read_spark
from penstock.sql.definitions.tables import get_known
from penstock.sql.parsing.counts import find_count
from penstock.sql.statements import Statement, StatementSource


@dataclass(frozen=True, slots=True)
class LanceStatement:
    """Filter, projection and limit of one table, which mean the same to Lance as to Spark."""

    table: SourceTable
    rows: Rows


@dataclass(frozen=True, slots=True)
class LanceCount:
    """How many rows of one table match a filter."""

    table: SourceTable
    name: str
    filter: str | None


def read_statement(
    query: Query, tables: Mapping[Identifier, SourceTable], moment: int
) -> LanceStatement | LanceCount | Statement:
    """The statement, for which it is this moment; raises InvalidRequest."""
    asked = query.statement
    counted = find_count(asked.sql) if asked is not None and asked.dialect == "spark" else None
    if asked is not None and counted is not None:
        rows = structs.replace(query, statement=structs.replace(asked, sql=counted.rows))
        found = _read(rows, tables, moment)
        if isinstance(found, LanceStatement):
            return LanceCount(found.table, counted.name, found.rows.filter)
    return _read(query, tables, moment)


def _read(
    query: Query, tables: Mapping[Identifier, SourceTable], moment: int
) -> LanceStatement | Statement:
    known = get_known(query, tables)
    read = read_lance if query.language == "lance" else read_spark
    found = read(query, known, None)
    if found.shape == "rows":
        rows = make_rows(found, found.outputs)
        if rows.engine == "lance":
            return LanceStatement(found.tables[0][0], rows_at(rows, moment))
    return Statement(
        sql=sql_at(found.sql, moment),
        sources=tuple(_to_source(found, moment, *each) for each in found.tables),
        kept=_encode_kept(found),
    )


def _to_source(
    found: ParsedQuery, moment: int, table: SourceTable, name: str, reads: tuple[str, ...]
) -> StatementSource:
    pushed = found.pushed.get(name)
    columns = {parse_path(path)[0] for path in reads}
    return StatementSource(
        id=table.id,
        table=table.identifier,
        name=name,
        version=table.open_dataset().version,
        reads=tuple(show_path((each,)) for each in table.schema.names if each in columns),
        filter=None if pushed is None else at_moment(pushed, moment),
    )


def _encode_kept(found: ParsedQuery) -> str:
    kept = [
        (str(place), output.type)
        for place, output in enumerate(found.outputs)
        if output.path is not None and output.type is not None
    ]
    return encode_schema(pa.schema(kept))
