"""Change which tables there are: register, drop, deregister; `impact/renames.py` renames.

What depends on a table is looked at first. Materialized views are checked in the transaction that
makes the change; Iceberg views are found before it, because reading their SQL takes time.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.impact import graph
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.jobs import jobs
from penstock.catalog.names import dependents, namespaces, removals, tables, transactions
from penstock.catalog.names.dependents import KeptVersions
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, NotALanceTable, TableNotFound, ViewIsNoTable
from penstock.lance.commit.manifest import parse_name, versions_folder
from penstock.lance.storage import files
from penstock.model.allowances import CASCADE, NOTHING_BREAKS, Allowance
from penstock.model.identifiers import Identifier, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table


@dataclass(frozen=True, slots=True)
class DroppedTables:
    """What a drop took out of the catalog; the table that was named comes first."""

    tables: list[Table]
    kept: list[KeptVersions]
    iceberg: list[IcebergView]


async def register(catalog: Catalog, new: NewTable, mode: str, origin: Origin = NOBODY) -> str:
    """Register a table that exists on storage; mode is create or overwrite."""
    place = catalog.lake.place(new.table.location)
    entries = await catalog.lake.run(files.list_folder, place, versions_folder(MAIN))
    if not any(parse_name(entry.name) for entry in entries):
        raise InvalidRequest(
            f"location {new.table.location!r} holds no Lance table",
            detail="check the location, or declare the table and write it",
        )
    transaction = await catalog.database.write(_register, new, mode, origin)
    await reconcile.reconcile(catalog, new.table, MAIN)
    return transaction


async def drop(
    catalog: Catalog,
    id: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> tuple[Table, str]:
    """Drop a table and delete its files; refused when views read it, unless that is allowed."""
    named_by = await _find_named_by(catalog, id, allowed)
    dropped, transaction = await catalog.database.write(_drop, id, origin, allowed, named_by)
    await removals.carry_out(catalog, [table.location for table in dropped.tables])
    await iceberg_views.remove_files(catalog, dropped.iceberg)
    await dependents.let_go(catalog, dropped.kept)
    return dropped.tables[0], transaction


async def deregister(
    catalog: Catalog,
    id: Identifier,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
) -> tuple[Table, str]:
    """Remove a table, perhaps with views that read it, from the catalog; the files stay."""
    named_by = await _find_named_by(catalog, id, allowed)
    dropped, transaction = await catalog.database.write(_deregister, id, origin, allowed, named_by)
    await dependents.let_go(catalog, dropped.kept)
    return dropped.tables[0], transaction


async def drop_readers(
    catalog: Catalog,
    what: str,
    views: Sequence[str],
    iceberg: Sequence[IcebergView],
    origin: Origin,
) -> None:
    """Drop views that read something, and all that read these."""
    listed = await dependents.list_named(catalog.database, [*views, *(v.id for v in iceberg)])
    targets = [NamedObject(id, name) for id, name, _ in listed]
    if not targets:
        return
    found = await graph.find_graph(catalog, targets)
    named = {view.id: view for view in (*iceberg, *found.list_iceberg())}
    dropped = await catalog.database.write(_drop_readers, what, views, [*named.values()], origin)
    await removals.carry_out(catalog, [table.location for table in dropped.tables])
    await iceberg_views.remove_files(catalog, dropped.iceberg)
    await dependents.let_go(catalog, dropped.kept)


async def _drop_readers(
    tx: Transaction,
    what: str,
    views: Sequence[str],
    iceberg: Sequence[IcebergView],
    origin: Origin,
) -> DroppedTables:
    ids = [view.id for view in iceberg]
    more = await dependents.check_unread(tx, what, [*views, *ids], CASCADE, origin)
    await dependents.check_owned(tx, what, [*views, *ids], origin)
    found = [await tables.find_by_id(tx, id) for id in dict.fromkeys([*views, *more])]
    gone = [table for table in found if table is not None]
    dropped = await delete_all(tx, gone, iceberg)
    await removals.enqueue(tx, [table.location for table in gone])
    # The key of the request belongs to what it is about.
    unkeyed = replace(origin, keys=())
    for table in gone:
        await transactions.record(tx, "DropTable", str(table), unkeyed)
    for view in iceberg:
        await transactions.record(tx, "DropView", show(view.identifier), unkeyed)
    return dropped


async def _find_named_by(catalog: Catalog, id: Identifier, allowed: Allowance) -> list[IcebergView]:
    """The Iceberg views that read a table under its name, also by way of other views."""
    if allowed.force:
        return []
    table = await tables.get(catalog.database, id)
    named = [NamedObject(table.id, table.identifier)]
    # A cascade takes materialized views along, and so what reads those.
    found = await graph.find_graph(catalog, named, through_tables=allowed.cascade)
    return found.list_iceberg()


async def deregister_in(tx: Transaction, id: Identifier, origin: Origin) -> tuple[Table, str]:
    dropped, transaction = await _deregister(tx, id, origin, None)
    return dropped.tables[0], transaction


async def _register(tx: Transaction, new: NewTable, mode: str, origin: Origin) -> str:
    if mode == "overwrite":
        with contextlib.suppress(TableNotFound, ViewIsNoTable, NotALanceTable):
            table = await tables.get(tx, new.table.identifier)
            tables.check_rows(table)
            await _delete(tx, table.identifier, origin, None)
    await tables.insert_in(tx, new, origin)
    return await transactions.record(tx, "RegisterTable", str(new.table), origin)


async def _drop(
    tx: Transaction,
    id: Identifier,
    origin: Origin,
    allowed: Allowance,
    named_by: Sequence[IcebergView],
) -> tuple[DroppedTables, str]:
    dropped = await _delete(tx, id, origin, allowed, named_by)
    await removals.enqueue(tx, [table.location for table in dropped.tables])
    name = str(dropped.tables[0])
    return dropped, await transactions.record(tx, "DropTable", name, origin)


async def _deregister(
    tx: Transaction,
    id: Identifier,
    origin: Origin,
    allowed: Allowance | None,
    named_by: Sequence[IcebergView] = (),
) -> tuple[DroppedTables, str]:
    dropped = await _delete(tx, id, origin, allowed, named_by)
    name = str(dropped.tables[0])
    return dropped, await transactions.record(tx, "DeregisterTable", name, origin)


async def _delete(
    tx: Transaction,
    id: Identifier,
    origin: Origin,
    allowed: Allowance | None,
    named_by: Sequence[IcebergView] = (),
) -> DroppedTables:
    """Delete a table and, if allowed, the views that read it."""
    table = await tables.get(tx, id)
    views = await dependents.check_unread(
        tx, f"table {table}", [table.id], allowed, origin, [view.id for view in named_by]
    )
    found = [await tables.find_by_id(tx, view) for view in views]
    gone = [table, *(each for each in found if each is not None)]
    taken_along = named_by if allowed is not None and allowed.cascade else ()
    return await delete_all(tx, gone, taken_along)


async def delete_all(
    tx: Transaction, gone: list[Table], named_by: Sequence[IcebergView]
) -> DroppedTables:
    """Delete tables, materialized views and Iceberg views, in the transaction of the change."""
    kept = await dependents.list_kept(tx, [each.id for each in gone if each.is_view])
    iceberg = [await iceberg_views.delete_in(tx, each) for each in named_by]
    for each in reversed(gone):
        await tables.delete_in(tx, each)
    return DroppedTables(gone, kept, iceberg)


async def rename_in(tx: Transaction, id: Identifier, new: Identifier, origin: Origin) -> str:
    """Rename a table, in any namespace; its files stay where they are."""
    table = await tables.get(tx, id)
    namespace, name = split_table(new)
    await namespaces.get(tx, namespace)
    await tables.check_free(tx, new)
    renamed = await tx.fetch(
        "UPDATE objects SET namespace = $2, name = $3 "
        "WHERE id = $1 AND namespace = $4 AND name = $5 RETURNING id",
        table.id,
        to_path(namespace),
        name,
        to_path(table.namespace),
        table.name,
    )
    if not renamed:
        raise tables.missing(id)
    await grants.moved_in(tx, table.id)
    await jobs.rename_in(tx, table.id, show(new))
    return await transactions.record(tx, "RenameTable", f"{show(id)} -> {show(new)}", origin)
