"""What a definition is made from: the request, its query, and the tables as they are now."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.lance.columns.inference import make_empty
from penstock.lance.errors import translated
from penstock.model.envelopes import Code
from penstock.model.identifiers import Identifier
from penstock.model.udtfs import Udtf
from penstock.model.views import Kind, Language

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset


class Reference(Struct, frozen=True):
    """A name in a query, and what it may mean: the first of these that exists."""

    name: Identifier
    candidates: tuple[Identifier, ...]


class Statement(Struct, frozen=True, kw_only=True):
    """SQL of one dialect, and where its names are read."""

    sql: str
    # As sqlglot calls it, or "lance".
    dialect: str
    namespace: Identifier
    catalog: str | None = None
    references: tuple[Reference, ...] = ()


class ColumnFunction(Struct, frozen=True, kw_only=True):
    """A function that fills an output of a query; its code is to be kept with the view."""

    output: str
    # Its place among the outputs.
    place: int
    name: str
    version: str
    inputs: tuple[str, ...]
    code: Code


class Dump(Struct, frozen=True, kw_only=True):
    """A query as other clients write theirs down: expressions in Lance's SQL, over one table."""

    source: Reference
    filter: str | None = None
    # Names and expressions; None is all columns.
    columns: tuple[tuple[str, str], ...] | None = None
    # Whether `columns` are paths of fields, not expressions.
    plain: bool = False
    limit: int | None = None
    functions: tuple[ColumnFunction, ...] = ()


class Query(Struct, frozen=True, kw_only=True):
    """A `source_query` that is read, before anything is known of the tables that it names.

    It is a statement, a dump, or the name of an Iceberg view (`view`) whose statement is the query.
    """

    language: Language
    statement: Statement | None = None
    dump: Dump | None = None
    view: Reference | None = None
    # Statements of the Iceberg views that are named in it, as far as they were added.
    views: tuple[tuple[Identifier, Statement], ...] = ()

    @property
    def references(self) -> tuple[Reference, ...]:
        """All names in the query and in its Iceberg views; each is to be looked up."""
        found = [self.view] if self.view else []
        found += [self.dump.source] if self.dump else []
        for statement in (self.statement, *(each for _, each in self.views)):
            found += statement.references if statement else ()
        return tuple(dict.fromkeys(found))

    @property
    def functions(self) -> tuple[ColumnFunction, ...]:
        return self.dump.functions if self.dump else ()


class SourceTable(Struct, frozen=True, kw_only=True):
    """A table of the catalog that a query names."""

    id: str
    identifier: Identifier
    schema: "pa.Schema"
    # For what only Lance knows of its SQL; without it an empty table of that schema is asked.
    open: "Callable[[], LanceDataset] | None" = None
    has_stable_row_ids: bool = True

    def open_dataset(self) -> "LanceDataset":
        with translated():
            return make_empty(self.schema) if self.open is None else self.open()


class ViewRequest(Struct, frozen=True, kw_only=True):
    """A materialized view as it was asked for."""

    kind: Kind
    query: Query
    # What the client declares; may hold system columns.
    output_schema: "pa.Schema | None" = None
    udtf: Udtf | None = None
    # Of a view that exists: the schema of the definition that it was created with. It keeps the
    # columns that a star stood for then.
    created: "pa.Schema | None" = None
