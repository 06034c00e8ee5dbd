"""Which views and computed columns read a column of a table, and what its change would break.

Materialized views and computed columns are known with what they read. The SQL of Iceberg views is
resolved against the tables as they are; what cannot be resolved counts when it has the column's
name in it, or a star.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import dialects
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.impact import graph, iceberg_readers
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.impact.view_reads import find_views, list_touched
from penstock.catalog.names import view_sources
from penstock.database.interface import Transaction
from penstock.lance.columns.fields import Path, parse_path
from penstock.model.tables import MAIN, Table
from penstock.sql.results import Refusal


@dataclass(frozen=True, slots=True)
class ComputedReader:
    """A computed column, and what of the table it reads."""

    name: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnReaders:
    """What reads some columns of a table itself, each with the paths that it reads of them."""

    computed: list[ComputedReader] = field(default_factory=list)
    # By id.
    views: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Iceberg views, and those that read them: all of these fail without the columns.
    iceberg: dict[str, IcebergView] = field(default_factory=dict)


async def find_column_readers(
    catalog: Catalog, table: Table, branch: str, paths: Sequence[str]
) -> ColumnReaders:
    """What reads columns of a table; views read the main branch only."""
    wanted = [parse_path(path) for path in paths]
    computed = await find_computed(catalog.database, table, branch, wanted)
    if branch != MAIN:
        return ColumnReaders(computed)
    iceberg = await _find_iceberg(catalog, table, wanted)
    views = await find_views(catalog.database, table.id, wanted)
    for view in iceberg:
        # Such a view has the columns in its own definition, unless the Iceberg view was replaced.
        for id in await view_sources.list_readers(catalog.database, view):
            views.setdefault(id, ())
    return ColumnReaders(computed, views, iceberg)


async def find_computed(
    tx: Transaction, table: Table, branch: str, wanted: Sequence[Path]
) -> list[ComputedReader]:
    """The computed columns of a branch that read one of some paths."""
    rows = await tx.fetch(
        "SELECT name, inputs FROM columns WHERE table_id = $1 AND branch = $2 ORDER BY name",
        *(table.id, branch),
    )
    found = [
        ComputedReader(row[0], msgspec.json.decode(row[1], type=tuple[str, ...])) for row in rows
    ]
    return [each for each in found if list_touched(each.inputs, wanted)]


async def _find_iceberg(
    catalog: Catalog, table: Table, wanted: Sequence[Path]
) -> dict[str, IcebergView]:
    named = await iceberg_readers.find_readers(catalog, NamedObject(table.id, table.identifier))
    found = [view for view in named if await reads_columns(catalog, view, table, wanted)]
    targets = [NamedObject(view.id, view.identifier) for view in found]
    below = await graph.find_graph(catalog, targets, through_tables=False)
    return {view.id: view for view in (*found, *below.list_iceberg())}


async def reads_columns(
    catalog: Catalog, view: IcebergView, table: Table, wanted: Sequence[Path]
) -> bool:
    """Whether the SQL of an Iceberg view, in one of its dialects, reads one of these columns."""
    names = {path[0] for path in wanted}
    metadata = msgspec.json.decode(view.document.text)
    for statement in iceberg_readers.list_statements(view):
        found = await dialects.find_reads(catalog, metadata, statement.dialect, statement.sql)
        if isinstance(found, Refusal):
            mentioned = any(iceberg_readers.mentions(statement.sql, name) for name in names)
            if mentioned or "*" in statement.sql:
                return True
        elif names & set(found.get(table.identifier, ())):
            return True
    return False
