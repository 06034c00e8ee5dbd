"""A query that is understood, before its outputs become columns of a view."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.datasets.columns import parse_path
from penstock.datasets.schemas import find_type
from penstock.definitions.requests import SourceTable
from penstock.definitions.schemas import write_schema
from penstock.model.views import Column, Language, Rows, Shape, Source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a query's result, with its expression in the SQL of whoever may evaluate it."""

    name: str
    # None is one that is not known before Spark computes it.
    type: "pa.DataType | None"
    texts: dict[Language, str]
    path: str | None = None
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    language: Language
    shape: Shape
    # With the name of each in `sql`, and all columns that are read there.
    tables: tuple[tuple[SourceTable, str, tuple[str, ...]], ...]
    outputs: tuple[Output, ...]
    sql: str = ""
    obstacle: str = ""
    filters: dict[Language, str] | None = None
    filter_reads: tuple[str, ...] = ()
    limit: int | None = None
    keys: tuple[Column, ...] = ()


def quote(name: str) -> str:
    """A name as Spark's SQL takes it, whatever it holds."""
    return "`" + name.replace("`", "``") + "`"


def make_rows(found: Found, outputs: tuple[Output, ...]) -> Rows:
    """These outputs over the rows of the one source, evaluated by Lance if it may."""
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
            )
            for output in outputs
        ),
        limit=found.limit,
    )


def make_sources(found: Found, outputs: tuple[Output, ...]) -> tuple[Source, ...]:
    """The sources, with what can change the view there."""
    sources = []
    for table, name, reads in found.tables:
        if found.shape == "rows":
            used = {path for output in outputs for path in output.reads} | set(found.filter_reads)
            reads = tuple(sorted(used))
        types = _encode_types(table, reads)
        made = Source(id=table.id, table=table.identifier, name=name, reads=reads, types=types)
        sources.append(made)
    return tuple(sources)


def _encode_types(table: SourceTable, paths: tuple[str, ...]) -> str:
    import pyarrow as pa

    kinds = {path: find_type(table.schema, parse_path(path)) for path in paths}
    return write_schema(pa.schema([(path, kind) for path, kind in kinds.items() if kind]))
