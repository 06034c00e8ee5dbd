"""A parsed query, before its outputs become columns of a view."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

import pyarrow as pa

from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import encode_schema, find_type
from penstock.model.moments import count_marks
from penstock.model.views import (
    NO_SQL,
    CheckedSql,
    Clock,
    Column,
    Keys,
    Language,
    Rows,
    Shape,
    Source,
)
from penstock.sql.definitions.requests import SourceTable


class ExpressionTexts(TypedDict, total=False):
    """An expression in the SQL of each engine that can evaluate it."""

    spark: CheckedSql
    lance: str


@dataclass(frozen=True, slots=True)
class QueryOutput:
    """A column of a query's result."""

    name: str
    # None when the type is unknown before Spark computes it.
    type: pa.DataType | None
    texts: ExpressionTexts
    path: str | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    language: Language
    shape: Shape
    # With the name of each in `sql`, and all columns that are read there.
    tables: tuple[tuple[SourceTable, str, tuple[str, ...]], ...]
    outputs: tuple[QueryOutput, ...]
    sql: CheckedSql = NO_SQL
    obstacle: str = ""
    filters: ExpressionTexts | None = None
    filter_reads: tuple[str, ...] = ()
    limit: int | None = None
    # For the shape "keys".
    keys: Keys | None = None
    # None when it does not read the clock.
    clock: Clock | None = None
    # By table name in `sql`: columns that the author's text names, where it is not this one.
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # By table name in `sql`: conditions that relevant rows meet, in Lance's SQL.
    pushed: Mapping[str, str] = field(default_factory=dict)


def quote(name: str) -> str:
    """A name quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def make_rows(found: ParsedQuery, outputs: tuple[QueryOutput, ...]) -> Rows:
    """These outputs over the rows of the one source, evaluated by Lance where possible."""
    texts = [output.texts for output in outputs] + ([found.filters] if found.filters else [])
    engine: Language = "lance" if all("lance" in each for each in texts) else "spark"
    return Rows(
        engine=engine,
        filter=found.filters[engine] if found.filters else None,
        columns=tuple(
            Column(
                name=output.name,
                expression=output.texts[engine],
                path=output.path,
                reads=output.reads,
                reads_clock=bool(count_marks(output.texts[engine])),
            )
            for output in outputs
        ),
        limit=found.limit,
        lance_filter=found.filters.get("lance") if found.filters and engine == "spark" else None,
    )


def make_sources(found: ParsedQuery, outputs: tuple[QueryOutput, ...]) -> tuple[Source, ...]:
    """The sources, with the columns that can change the view."""
    sources = []
    for table, name, reads in found.tables:
        if found.shape == "rows":
            used = {path for output in outputs for path in output.reads} | set(found.filter_reads)
            reads = tuple(sorted(used))
        source = Source(
            id=table.id,
            table=table.identifier,
            name=name,
            reads=reads,
            types=_encode_types(table, reads),
            named=_list_unread(found.named.get(name, ()), reads),
            fields=_find_fields(table, reads),
            filter=None if table.is_iceberg else found.pushed.get(name),
            is_iceberg=table.is_iceberg,
        )
        sources.append(source)
    return tuple(sources)


def _list_unread(named: tuple[str, ...], reads: tuple[str, ...]) -> tuple[str, ...]:
    read = {parse_path(path)[0] for path in reads}
    return tuple(path for path in named if parse_path(path)[0] not in read)


def _find_fields(table: SourceTable, paths: tuple[str, ...]) -> dict[str, int]:
    roots = sorted({parse_path(path)[0] for path in paths})
    return {name: table.fields[name] for name in roots if name in table.fields}


def _encode_types(table: SourceTable, paths: tuple[str, ...]) -> str:
    kinds = {path: find_type(table.schema, parse_path(path)) for path in paths}
    return encode_schema(pa.schema([(path, kind) for path, kind in kinds.items() if kind]))
