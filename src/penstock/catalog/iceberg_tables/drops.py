"""Drops of Iceberg tables: the record goes; the files only if a purge is asked for."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_tables import iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.creation import LoadedTable
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.catalog.names import removals, transactions
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, DamagedFile, FileNotFound, InvalidRequest
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin
from penstock.retries import spread

ATTEMPTS = 10
PAUSE_SECONDS = 0.01


async def drop(
    catalog: Catalog, id: Identifier, *, purge: bool = False, origin: Origin = NOBODY
) -> None:
    """Remove a table from the catalog; a purge also removes the folders that are its own.

    Files that its metadata names elsewhere stay in any case: others may use them.
    """
    for pause in spread(PAUSE_SECONDS, ATTEMPTS):
        table = await iceberg_tables.get(catalog.database, id)
        if purge:
            await _check_purge(catalog, table)
        folders = table.folders if purge else []
        if await catalog.database.write(_drop, table, folders, origin):
            if purge and not table.holds(table.metadata_folder):
                await metadata_files.abandon(catalog, [table.metadata_location])
            await removals.carry_out(catalog, folders)
            return
        await asyncio.sleep(pause)
    raise ConcurrentCommit(f"Cannot drop {'.'.join(id)}: it changes too fast", detail="retry")


async def unregister(catalog: Catalog, id: Identifier, origin: Origin = NOBODY) -> LoadedTable:
    """Remove a table from the catalog, and return it as it was in the end; its files stay."""
    for pause in spread(PAUSE_SECONDS, ATTEMPTS):
        table = await iceberg_tables.get(catalog.database, id)
        table, text = await metadata_files.load(catalog, table)
        if await catalog.database.write(_drop, table, (), origin, "UnregisterIcebergTable"):
            return LoadedTable(table, text, table.location)
        await asyncio.sleep(pause)
    raise ConcurrentCommit(f"Cannot unregister {'.'.join(id)}: it changes too fast", detail="retry")


async def _check_purge(catalog: Catalog, table: IcebergTable) -> None:
    """Refuse to purge a table whose properties say that its files belong to others as well."""
    try:
        _, text = await metadata_files.load(catalog, table)
    except (DamagedFile, FileNotFound):
        return  # nothing is said, and nothing can be read any more
    document: dict[str, Any] = msgspec.json.decode(text)
    properties = document.get("properties") or {}
    if str(properties.get("gc.enabled", "true")).lower() == "false":
        raise InvalidRequest(
            "Cannot purge table: its property gc.enabled is false",
            detail="drop it without a purge, or set the property to true",
        )


async def _drop(
    tx: Transaction,
    table: IcebergTable,
    folders: Sequence[str],
    origin: Origin,
    operation: str = "DropIcebergTable",
) -> bool:
    if not await iceberg_tables.delete_in(tx, table, origin):
        return False
    await removals.enqueue(tx, folders)
    notes = {
        "metadata-location": table.metadata_location,
        "folder": table.metadata_folder,
        "uuid": table.uuid,
    }
    await transactions.record(tx, operation, show(table.identifier), origin, notes=notes)
    return True
