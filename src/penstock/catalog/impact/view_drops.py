"""Drop an Iceberg view, after a look at the views that read it.

Iceberg views know it by its name, and are found before the transaction, because reading their SQL
takes time. Iceberg's own DropView does not ask for them.
"""

from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.impact import graph
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.names import dependents, removals, table_changes, tables, transactions
from penstock.catalog.names.table_changes import DroppedTables
from penstock.database.interface import Transaction
from penstock.model.allowances import NOTHING_BREAKS, Allowance
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin


async def drop(
    catalog: Catalog,
    id: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> None:
    """Drop an Iceberg view; refused when views read it, unless that is allowed."""
    named_by = await _find_named_by(catalog, id, allowed)
    dropped = await catalog.database.write(_drop, id, origin, allowed, named_by)
    await removals.carry_out(catalog, [table.location for table in dropped.tables])
    await iceberg_views.remove_files(catalog, dropped.iceberg)
    await dependents.let_go(catalog, dropped.kept)


async def _find_named_by(catalog: Catalog, id: Identifier, allowed: Allowance) -> list[IcebergView]:
    """The Iceberg views that read it under its name, also by way of other views."""
    if allowed.force:
        return []
    view = await iceberg_views.get(catalog.database, id)
    target = NamedObject(view.id, view.identifier)
    # A cascade takes materialized views along, and so what reads those.
    found = await graph.find_graph(catalog, [target], through_tables=allowed.cascade)
    return [each for each in found.list_iceberg() if each.id != view.id]


async def _drop(
    tx: Transaction,
    id: Identifier,
    origin: Origin,
    allowed: Allowance,
    named_by: Sequence[IcebergView],
) -> DroppedTables:
    view = await iceberg_views.get(tx, id)
    views = await dependents.check_unread(
        tx, f"view {show(id)}", [view.id], allowed, origin, [each.id for each in named_by]
    )
    found = [await tables.find_by_id(tx, each) for each in views]
    gone = [each for each in found if each is not None]
    taken_along = named_by if allowed.cascade else ()
    dropped = await table_changes.delete_all(tx, gone, [view, *taken_along])
    await removals.enqueue(tx, [table.location for table in gone])
    await transactions.record(tx, "DropView", show(id), origin)
    return dropped
