"""Inputs of a definition: the request, its query, and the current tables."""

from collections.abc import Callable, Mapping

import pyarrow as pa
from lance import LanceDataset
from msgspec import Struct, structs

from penstock.lance.columns.inference import make_empty
from penstock.lance.errors import translated
from penstock.model.envelopes import FunctionCode
from penstock.model.identifiers import Identifier
from penstock.model.udtfs import Udtf
from penstock.model.views import Kind, Language
from penstock.sql.statements import Use


class Reference(Struct, frozen=True):
    """A name in a query, and its possible meanings: the first one that exists counts."""

    name: Identifier
    candidates: tuple[Identifier, ...]
    # What it means, once somebody has looked: () for nothing.
    meant: Identifier | None = None


# What names mean, as far as they mean anything.
Meanings = Mapping[Reference, Identifier]


class Statement(Struct, frozen=True, kw_only=True):
    """SQL of one dialect, and the namespace of its names."""

    sql: str
    # sqlglot's name of it, or "lance".
    dialect: str
    namespace: Identifier
    catalog: str | None = None
    references: tuple[Reference, ...] = ()

    def bind(self, meanings: Meanings) -> "Statement":
        """The statement with the meanings of its names."""
        return structs.replace(self, references=tuple(_bind(r, meanings) for r in self.references))


class ColumnFunction(Struct, frozen=True, kw_only=True):
    """A function that fills an output of a query; its code is stored with the view."""

    output: str
    # Its place among the outputs.
    place: int
    name: str
    version: str
    inputs: tuple[str, ...]
    code: FunctionCode


class Dump(Struct, frozen=True, kw_only=True):
    """A query in other clients' form: expressions in Lance's SQL, over one table."""

    source: Reference
    filter: str | None = None
    # Names and expressions; None is all columns.
    columns: tuple[tuple[str, str], ...] | None = None
    # Whether `columns` are paths of fields, not expressions.
    plain: bool = False
    limit: int | None = None
    functions: tuple[ColumnFunction, ...] = ()


class Query(Struct, frozen=True, kw_only=True):
    """A parsed `source_query`, before its tables are known.

    It is a statement, a dump, or the name of an Iceberg view (`view`) whose statement is the query.
    """

    language: Language
    statement: Statement | None = None
    dump: Dump | None = None
    view: Reference | None = None
    use: Use = "view"
    # Statements of the Iceberg views in it, as far as they were added.
    views: tuple[tuple[Identifier, Statement], ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        """All names to look up, in the query and in its Iceberg views."""
        found = [self.view] if self.view else []
        found += [self.dump.source] if self.dump else []
        for statement in (self.statement, *(each for _, each in self.views)):
            found += statement.references if statement else ()
        return tuple(dict.fromkeys(found))

    @property
    def functions(self) -> tuple[ColumnFunction, ...]:
        return self.dump.functions if self.dump else ()

    def bind(self, own: Meanings, inner: Mapping[Identifier, Meanings]) -> "Query":
        """The query with the meanings of its own names, and of those in each Iceberg view."""
        return structs.replace(
            self,
            statement=self.statement and self.statement.bind(own),
            dump=self.dump and structs.replace(self.dump, source=_bind(self.dump.source, own)),
            view=self.view and _bind(self.view, own),
            views=tuple((view, each.bind(inner[view])) for view, each in self.views),
        )


def _bind(reference: Reference, meanings: Meanings) -> Reference:
    return structs.replace(reference, meant=meanings.get(reference, ()))


class SourceTable(Struct, frozen=True, kw_only=True):
    """A table of the catalog that a query names."""

    id: str
    identifier: Identifier
    schema: pa.Schema
    # Opens the dataset for questions that only Lance can answer; without it, an empty table of that
    # schema is used.
    open: Callable[[], LanceDataset] | None = None
    has_stable_row_ids: bool = True
    version: int = 0
    is_iceberg: bool = False
    # Of an Iceberg table: what identifies each column with its inner fields, and their defaults.
    shapes: dict[str, str] = {}
    # The ids of its columns' fields, by name, where they are known.
    fields: dict[str, int] = {}

    def open_dataset(self) -> LanceDataset:
        with translated():
            return make_empty(self.schema) if self.open is None else self.open()


class ViewRequest(Struct, frozen=True, kw_only=True):
    """A materialized view as requested."""

    kind: Kind
    query: Query
    # What the client declares; may include system columns.
    output_schema: pa.Schema | None = None
    udtf: Udtf | None = None
    # For an existing view: the schema that it was created with, which keeps the columns that a star
    # stood for then.
    created: pa.Schema | None = None
    # The types of the query's outputs as Spark found them, for those that are not known otherwise.
    typed: pa.Schema | None = None
    # For one that is altered: the schema that it has, whose types stay where they fit.
    before: pa.Schema | None = None
    # Without `output_schema`: the query's columns that a chunker's view has.
    inherited: tuple[str, ...] | None = None
