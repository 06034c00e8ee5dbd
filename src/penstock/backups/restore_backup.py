"""Restore a backup as a new catalog with its own lake: first all files, then all rows at once.

No job is restarted: jobs that were queued or running are canceled, because the original catalog may
still be running them. The original catalog and its lake are not touched.
"""

import asyncio
import os
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from penstock.backups import archive, dump
from penstock.backups.archive import BackupInfo, CopiedTable
from penstock.backups.dump import Dump
from penstock.backups.moved_views import Move, MovedView, move_view, set_sizes_in, settle_in
from penstock.catalog.jobs import jobs
from penstock.catalog.names import lake_identity
from penstock.database import schema
from penstock.database.interface import Database, Transaction
from penstock.errors import DamagedFile, DatabaseMismatch, InvalidRequest
from penstock.lance.copies import tables, transfer
from penstock.lance.copies.checking import check_versions
from penstock.lance.storage import lake_marker
from penstock.lance.storage.lake import Lake
from penstock.model.locations import is_within, join

TABLES = 4
REASON = "the catalog was restored from a backup: request it again if it is still wanted"

Told = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Restoration:
    """What a restore created."""

    page: BackupInfo
    catalog: str
    canceled_jobs: int
    views: int


async def restore(database: Database, source: Lake, lake: Lake, tell: Told) -> Restoration:
    """Create a catalog in an empty database and a lake in an empty root."""
    page = await source.run(archive.read_info, source)
    await check_empty(database, source, lake)
    rows = await source.run(archive.read_rows, source, page)
    if lake.place(lake.root).is_local:
        os.makedirs(lake.root, exist_ok=True)
    sizes = await _copy_all(page, rows, source, lake, tell)
    move = Move(page.root.rstrip("/") if page.root != "/" else "/", lake.root)
    views = await lake.run(_move_views, lake, move, rows)
    await lake.run(transfer.make_names_durable, lake.place(lake.root))
    id = uuid.uuid4().hex
    canceled = await database.write(_load, database.kind, page, rows, move, views, sizes, id)
    await lake.run(lake_marker.write_marker, lake.place(lake.root), id)
    return Restoration(page, id, canceled, len(views))


async def check_empty(database: Database, source: Lake, lake: Lake) -> None:
    """Refuse a database or a root that is not empty."""
    if is_within(source.root, lake.root) or is_within(lake.root, source.root):
        raise InvalidRequest(
            f"the backup {source.root} and the lake {lake.root} are in each other",
            detail="restore into a folder of its own",
        )
    if not (await schema.get_status(database)).is_fresh:
        raise DatabaseMismatch(
            "the database holds a catalog already",
            detail="name an empty one with --database, or another folder with --data",
        )
    if not await lake.run(transfer.is_empty, lake.place(lake.root)):
        raise InvalidRequest(
            f"the lake {lake.root} is not empty",
            detail="name another with --data or storage.root; if a restore was interrupted here, "
            "empty it first",
        )


async def _copy_all(
    page: BackupInfo, rows: Dump, source: Lake, lake: Lake, tell: Told
) -> dict[str, dict[str, int]]:
    """Copy the tables; returns the sizes of the rewritten manifests, by table."""
    versions: dict[str, dict[str, set[int]]] = {}
    for row in rows["table_versions"].dicts() if "table_versions" in rows else ():
        if not row["hidden"]:
            of_table = versions.setdefault(row["table_id"], {})
            of_table.setdefault(row["branch"], set()).add(row["version"])
    sizes, loop = {}, asyncio.get_running_loop()
    with ThreadPoolExecutor(TABLES, thread_name_prefix="restore") as pool:
        running = [
            loop.run_in_executor(pool, _copy, table, versions.get(table.id, {}), source, lake)
            for table in page.tables
        ]
        for number, done in enumerate(asyncio.as_completed(running), 1):
            table, changed = await done
            sizes[table.id] = changed
            tell(number, len(page.tables), table.name)
    return sizes


def _copy(
    table: CopiedTable, versions: dict[str, set[int]], source: Lake, lake: Lake
) -> tuple[CopiedTable, dict[str, int]]:
    place = lake.place(join(lake.root, table.path))
    change = tables.moved_base(table.was, place.location)
    changed = tables.copy_folder(archive.place_of(source, archive.LAKE, table.path), place, change)
    present = {file.path for file in transfer.list_files(place)}
    flaws = check_versions(archive.folder_of(lake, place), versions, present)
    if flaws:
        first = flaws[0]
        raise DamagedFile(
            f"the backup of table {table.name} is damaged: version {first.version}: "
            f"{first.path} {first.wrong}",
            detail="use another backup; nothing was put into the database",
        )
    return table, changed


def _move_views(lake: Lake, move: Move, rows: Dump) -> list[MovedView]:
    found = rows["views"].dicts() if "views" in rows else ()
    moved = (move_view(lake, move, row, all_in=True) for row in found)
    return [view for view in moved if view is not None]


async def _load(
    tx: Transaction,
    kind: str,
    page: BackupInfo,
    rows: Dump,
    move: Move,
    views: list[MovedView],
    sizes: dict[str, dict[str, int]],
    id: str,
) -> int:
    await schema.set_up(tx, kind, page.schema)
    await dump.load(tx, rows)
    await schema.upgrade_in(tx, kind)
    await lake_identity.become(tx, id, join(move.now, ""))
    await settle_in(tx, move, views)
    for table_id, changed in sizes.items():
        await set_sizes_in(tx, table_id, changed)
    return await jobs.end_all_in(tx, REASON)
