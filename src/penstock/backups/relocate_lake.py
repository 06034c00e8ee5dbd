"""Tell a catalog that its lake was moved by hand, or copied with a copy of its database.

First, files in the lake that name the old place are rewritten, which can be repeated after an
interruption. Then one transaction gives the catalog its new root.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from penstock.backups.moved_views import Move, MovedView, move_view, set_sizes_in, settle_in
from penstock.catalog.names import lake_identity
from penstock.catalog.names.lake_identity import NAME
from penstock.database.interface import Database, Transaction
from penstock.database.location_sql import is_relative
from penstock.errors import DatabaseMismatch, InvalidRequest, Unavailable
from penstock.lance.copies import tables, transfer
from penstock.lance.copies.copy_plan import split_version
from penstock.lance.storage import files, lake_marker
from penstock.lance.storage.lake import Lake
from penstock.model.identifiers import from_path, show
from penstock.model.locations import join

TABLES = 4

Told = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Relocation:
    """From where to where, and what was rewritten."""

    was: str
    now: str
    tables: int
    views: int


@dataclass(frozen=True, slots=True)
class _CatalogContents:
    id: str
    root: str
    # Each table below the root: its id, its path, and a manifest that must exist.
    tables: list[tuple[str, str, str | None]]
    views: list[dict[str, Any]]
    # The names of Iceberg tables below the root.
    iceberg_tables: list[str]


async def relocate(database: Database, lake: Lake, tell: Told, was: str = "") -> Relocation:
    """Move the lake to where the settings say; `was` is the old root if the catalog has none."""
    await _check_alone(database)
    known = await database.read(_read)
    now = join(lake.root, "")
    root = known.root or (join(was, "") if was else "")
    if not root:
        raise DatabaseMismatch(
            "the catalog does not say where its lake was", detail="name its old root with --was"
        )
    if root == now:
        return Relocation(root, now, 0, 0)
    await _check_lake(lake, known)
    if not known.root:
        # A catalog from before relative locations: make them relative first.
        await database.write(lake_identity.begin, root)
        known = await database.read(_read)
    move = Move(root.rstrip("/") or "/", lake.root)
    sizes, loop = {}, asyncio.get_running_loop()
    with ThreadPoolExecutor(TABLES, thread_name_prefix="relocate") as pool:
        running = [
            loop.run_in_executor(pool, _rebase, lake, move, *table[:2]) for table in known.tables
        ]
        for number, done in enumerate(asyncio.as_completed(running), 1):
            id, path, changed = await done
            sizes[id] = changed
            tell(number, len(known.tables), path)
    views = await lake.run(_move_views, lake, move, known.views)
    await database.write(_settle, move, views, sizes)
    return Relocation(root, now, len(known.tables), len(views))


async def _check_alone(database: Database) -> None:
    """Refuse while a server uses the catalog; opening a SQLite file is what claims it."""
    if database.kind != "postgresql":
        return
    row = await database.fetch_one(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
        "AND application_name = 'penstock' AND pid <> pg_backend_pid()"
    )
    if row is not None and row[0]:
        raise Unavailable(
            f"{row[0]} connections of Penstock are open to the catalog's database",
            detail="stop its servers first",
        )


async def _check_lake(lake: Lake, known: _CatalogContents) -> None:
    """Refuse a place without this lake, or with another one, and a lake that can't be moved."""
    if known.iceberg_tables:
        raise InvalidRequest(
            f"{len(known.iceberg_tables)} Iceberg tables are in the lake, the first is "
            f"{known.iceberg_tables[0]}: all their files name the old place",
            detail="keep the lake where it was; or unregister them first, and register copies "
            "whose paths an engine has rewritten",
        )
    place = lake.place(lake.root)
    found = await lake.run(lake_marker.read_marker, place)
    if found and known.id and found != known.id:
        raise DatabaseMismatch(
            f"the lake at {lake.root} belongs to catalog {found}, and the database is catalog "
            f"{known.id}",
            detail="name the lake that belongs to the database",
        )
    wanted = [(path, f"{path}/{file}") for _, path, file in known.tables if file is not None]
    looked = await asyncio.gather(*(lake.run(files.exists, place, file) for _, file in wanted))
    missing = [path for (path, _), is_there in zip(wanted, looked, strict=True) if not is_there]
    if missing:
        raise InvalidRequest(
            f"{len(missing)} tables are not at {lake.root}, the first is {missing[0]}",
            detail="move or copy all of the lake there first",
        )


async def _read(tx: Transaction) -> _CatalogContents:
    mark = await tx.fetch_one("SELECT id FROM lake_mark WHERE name = $1", NAME)
    rows = await tx.fetch(
        "SELECT t.id, t.location, (SELECT v.manifest_path FROM table_versions v "
        "WHERE v.table_id = t.id AND v.branch = '' AND v.hidden = 0 AND v.settled = 1 "
        "ORDER BY v.version DESC LIMIT 1) FROM tables t ORDER BY t.location"
    )
    below = [tuple(row) for row in rows if not row[1].startswith("/") and "://" not in row[1]]
    views = await tx.fetch("SELECT id, metadata_location, metadata FROM views")
    iceberg = await tx.fetch(
        "SELECT o.namespace, o.name FROM iceberg_tables i JOIN objects o ON o.id = i.id "
        f"WHERE {is_relative('i.location')} ORDER BY o.namespace, o.name"
    )
    return _CatalogContents(
        "" if mark is None else str(mark[0]),
        await lake_identity.find_root(tx),
        [(str(id), str(path), manifest) for id, path, manifest in below],
        [dict(zip(("id", "metadata_location", "metadata"), row, strict=True)) for row in views],
        [show((*from_path(namespace), name)) for namespace, name in iceberg],
    )


def _rebase(lake: Lake, move: Move, id: str, path: str) -> tuple[str, str, dict[str, int]]:
    place = lake.place(join(move.now, path))
    # Only manifests of branches name the table's folder; old tables may have others.
    paths = [f.path for f in transfer.list_files(place) if split_version(f.path) is not None]
    change = tables.moved_base(join(move.was, path), place.location)
    changed = tables.rebase_folder(place, paths, change)
    # An interrupted attempt may have rewritten them without recording their sizes.
    branches = {p: files.get_size(place, p) for p in paths if p.startswith("tree/")}
    return id, path, branches | changed


def _move_views(lake: Lake, move: Move, rows: list[dict[str, Any]]) -> list[MovedView]:
    moved = (move_view(lake, move, row, all_in=False) for row in rows)
    return [view for view in moved if view is not None]


async def _settle(
    tx: Transaction, move: Move, views: list[MovedView], sizes: dict[str, dict[str, int]]
) -> None:
    await lake_identity.set_root(tx, join(move.now, ""))
    await settle_in(tx, move, views)
    for table_id, changed in sizes.items():
        await set_sizes_in(tx, table_id, changed)
