"""Check all that a catalog names: versions with their files, and Iceberg metadata."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from penstock.backups import archive
from penstock.backups.make_backup import check_current, check_root
from penstock.catalog.iceberg_tables.metadata_files import read_text
from penstock.catalog.iceberg_views.metadata_files import read_document
from penstock.catalog.names import lake_identity
from penstock.database.interface import Database, Transaction
from penstock.errors import PenstockError
from penstock.lance.copies import transfer
from penstock.lance.copies.checking import check_versions
from penstock.lance.copies.copy_plan import find_heads, split_version
from penstock.lance.storage.lake import Lake
from penstock.model.branches import show_branch
from penstock.model.identifiers import from_path, show

TABLES = 4

Told = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    """Something that the catalog names and that cannot be read."""

    what: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """How much was checked, and what is wrong with it."""

    tables: int
    views: int
    iceberg_tables: int
    versions: int
    files: int
    missing: list[UnreadableItem]


@dataclass(frozen=True, slots=True)
class _Table:
    name: str
    location: str
    is_managed: bool
    versions: dict[str, set[int]]


async def inspect_catalog(database: Database, lake: Lake, tell: Told) -> Inspection:
    """Check all tables and views of a catalog; changes nothing.

    Of Iceberg tables only the metadata file: what it names is for engines to read.
    """
    await check_current(database)
    root, tables, views, iceberg_tables = await database.read(_read)
    check_root(root, lake)
    missing, versions, files = list[UnreadableItem](), 0, 0
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(TABLES, thread_name_prefix="doctor") as pool:
        running = [loop.run_in_executor(pool, _look_at, lake, table) for table in tables]
        for number, done in enumerate(asyncio.as_completed(running), 1):
            name, found, of_versions, of_files = await done
            missing += found
            versions += of_versions
            files += of_files
            tell(number, len(tables), name)
        for name, location in views:
            missing += await loop.run_in_executor(pool, _look_at_view, lake, name, location)
        for each in iceberg_tables:
            missing += await loop.run_in_executor(pool, _look_at_iceberg_table, lake, *each)
    missing.sort(key=lambda each: (each.what, each.wrong))
    return Inspection(len(tables), len(views), len(iceberg_tables), versions, files, missing)


def _look_at(lake: Lake, table: _Table) -> tuple[str, list[UnreadableItem], int, int]:
    what = f"table {table.name}"
    try:
        place = lake.place(table.location)
        listed = transfer.list_files(place)
        versions = {branch: {*found} for branch, found in table.versions.items()}
        # Commits by path that are not catalogued yet: check the newest of them, which is what
        # clients read.
        for branch, head in find_heads(listed).items():
            if not table.is_managed or branch not in versions:
                versions.setdefault(branch, set()).add(head)
        present = {file.path for file in listed}
        flaws = check_versions(archive.folder_of(lake, place), versions, present)
    except PenstockError as error:
        return table.name, [UnreadableItem(what, error.message)], 0, 0
    found = [
        UnreadableItem(
            f"{what}, branch {show_branch(flaw.branch)}, version {flaw.version}",
            f"{flaw.path} {flaw.wrong}".strip(),
        )
        for flaw in flaws
    ]
    data = sum(split_version(path) is None for path in present)
    return table.name, found, sum(map(len, versions.values())), data


def _look_at_view(lake: Lake, name: str, location: str) -> list[UnreadableItem]:
    try:
        read_document(lake, location)
    except PenstockError as error:
        return [UnreadableItem(f"view {name}", error.message)]
    return []


def _look_at_iceberg_table(
    lake: Lake, name: str, folder: str, location: str, uuid: str
) -> list[UnreadableItem]:
    try:
        read_text(lake, folder, location, uuid)
    except PenstockError as error:
        return [UnreadableItem(f"Iceberg table {name}", error.message)]
    return []


async def _read(
    tx: Transaction,
) -> tuple[str, list[_Table], list[tuple[str, str]], list[tuple[str, str, str, str]]]:
    versions: dict[str, dict[str, set[int]]] = {}
    for id, branch, version in await tx.fetch(
        # An unsettled version may still be withdrawn.
        "SELECT table_id, branch, version FROM table_versions WHERE hidden = 0 AND settled = 1"
    ):
        versions.setdefault(id, {}).setdefault(branch, set()).add(version)
    rows = await tx.fetch(
        "SELECT o.id, o.namespace, o.name, absolute(t.location), t.managed FROM tables t "
        "JOIN objects o ON o.id = t.id ORDER BY o.namespace, o.name"
    )
    tables = [
        _Table(_name(namespace, name), location, bool(managed), versions.get(id, {}))
        for id, namespace, name, location, managed in rows
    ]
    views = await tx.fetch(
        "SELECT o.namespace, o.name, v.metadata_location FROM views v "
        "JOIN objects o ON o.id = v.id ORDER BY o.namespace, o.name"
    )
    named = [(_name(row[0], row[1]), str(row[2])) for row in views]
    rows = await tx.fetch(
        "SELECT o.namespace, o.name, absolute(i.metadata_folder), i.metadata_location, i.uuid "
        "FROM iceberg_tables i JOIN objects o ON o.id = i.id ORDER BY o.namespace, o.name"
    )
    iceberg_tables = [
        (_name(row[0], row[1]), str(row[2]), str(row[3]), str(row[4])) for row in rows
    ]
    return await lake_identity.find_root(tx), tables, named, iceberg_tables


def _name(namespace: Any, name: Any) -> str:
    return show((*from_path(namespace), name))
