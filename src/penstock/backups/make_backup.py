"""Make a backup: hold files, read all rows in one snapshot, copy their versions, check the copy.

The backup shows the moment of the database snapshot: later commits are not in it, and everything in
it was checked after it was copied.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version as version_of

from penstock.backups import archive, dump, holds
from penstock.backups.archive import BackupInfo, CopiedTable, LeftOutTable, SkippedVersion
from penstock.backups.dump import Dump
from penstock.catalog.names import lake_identity
from penstock.database.interface import Database, Transaction
from penstock.database.schema import get_status
from penstock.errors import DatabaseMismatch, InvalidRequest
from penstock.lance.copies import tables, transfer
from penstock.lance.copies.tables import RecordedVersion
from penstock.lance.storage.lake import Lake
from penstock.model.identifiers import from_path, show
from penstock.model.locations import is_within, join

# How many tables are copied at once.
TABLES = 4

Told = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class _Snapshot:
    rows: Dump
    catalog: str
    root: str
    at_millis: int
    iceberg_tables: list[LeftOutTable]


@dataclass(frozen=True, slots=True)
class _TableJob:
    """A table to copy."""

    id: str
    name: str
    was: str
    path: str
    is_managed: bool
    recorded: list[RecordedVersion]


async def make(database: Database, lake: Lake, target: Lake, tell: Told) -> BackupInfo:
    """Back up the catalog and its lake into an empty folder; `tell` is called for each table."""
    check_target(lake, target)
    applied = await check_current(database)
    if target.place(target.root).is_local:
        # The backup is as secret as the database and the lake.
        os.makedirs(target.root, exist_ok=True)
        os.chmod(target.root, 0o700)
    async with holds.hold_removals(database) as name:
        taken = await database.read(_snapshot, database.kind)
        check_root(taken.root, lake)
        alive = await database.read(holds.list_holds)
        jobs = list(_list_tables(taken, lake))
        copied, left_out = list[CopiedTable](), list[SkippedVersion]()
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(TABLES, thread_name_prefix="backup") as pool:
            running = [
                loop.run_in_executor(pool, _copy, job, lake, target, name, alive) for job in jobs
            ]
            for done in asyncio.as_completed(running):
                table, flawed = await done
                copied.append(table)
                left_out += flawed
                tell(len(copied), len(jobs), table.name)
    rows = _without(taken.rows, jobs, left_out)
    page = BackupInfo(
        format=archive.FORMAT,
        penstock=version_of("penstock"),
        schema=max(applied),
        catalog=taken.catalog,
        root=taken.root,
        database=database.kind,
        at_millis=taken.at_millis,
        rows={name: len(relation.rows) for name, relation in rows.items()},
        pieces=await target.run(archive.write_rows, target, rows),
        tables=sorted(copied, key=lambda table: table.name),
        left_out=left_out,
        iceberg_tables=taken.iceberg_tables,
    )
    await target.run(archive.write_info, target, page)
    return page


async def check_current(database: Database) -> tuple[int, ...]:
    """Refuse a database without a catalog of this release; returns its migrations."""
    status = await get_status(database)
    if status.is_fresh:
        raise DatabaseMismatch(
            "the database holds no catalog", detail="name the right one with --data or --database"
        )
    if not status.is_current:
        raise DatabaseMismatch(
            f"the database is {len(status.pending)} migrations behind this release",
            detail="stop its servers and run 'penstock db upgrade'",
        )
    return status.applied


def check_target(lake: Lake, target: Lake) -> None:
    """Refuse a folder that is not empty, or that is in the lake or around it; blocks."""
    for root in lake.roots:
        if is_within(target.root, root) or is_within(root, target.root):
            raise InvalidRequest(
                f"the backup {target.root} and the lake {root} are in each other",
                detail="name a folder of its own, best on another disk",
            )
    if not transfer.is_empty(target.place(target.root)):
        raise InvalidRequest(
            f"{target.root} is not empty", detail="name a new folder for each backup"
        )


def check_root(root: str, lake: Lake) -> None:
    """Refuse a catalog whose lake is not the one that the settings name."""
    if not root:
        raise DatabaseMismatch(
            "the catalog does not say where its lake is", detail="start a server on it once"
        )
    if root != join(lake.root, ""):
        raise DatabaseMismatch(
            f"the catalog's lake is at {root}, and storage.root is {join(lake.root, '')}",
            detail="name the right storage.root or --data, or tell of a move: penstock relocate",
        )


async def _snapshot(tx: Transaction, kind: str) -> _Snapshot:
    # First, because PostgreSQL takes the snapshot at the first statement.
    root = await lake_identity.find_root(tx)
    mark = await tx.fetch_one("SELECT id FROM lake_mark")
    rows = await dump.dump(tx, kind)
    left_out = [
        LeftOutTable(show((*from_path(namespace), name)), location)
        for namespace, name, location in await tx.fetch(
            "SELECT o.namespace, o.name, i.metadata_location FROM iceberg_tables i "
            "JOIN objects o ON o.id = i.id ORDER BY o.namespace, o.name"
        )
    ]
    now = time.time_ns() // 1_000_000
    return _Snapshot(rows, str(mark[0]) if mark else "", root, now, left_out)


def _list_tables(taken: _Snapshot, lake: Lake) -> Iterable[_TableJob]:
    names = {
        row["id"]: show((*from_path(row["namespace"]), row["name"]))
        for row in taken.rows["objects"].dicts()
    }
    versions: dict[str, list[RecordedVersion]] = {}
    for row in taken.rows["table_versions"].dicts():
        if not row["hidden"]:
            versions.setdefault(row["table_id"], []).append(
                RecordedVersion(
                    row["branch"], row["version"], row["manifest_path"], row["staged_path"]
                )
            )
    for row in taken.rows["tables"].dicts():
        kept, id = row["location"], row["id"]
        is_outside = kept.startswith("/") or "://" in kept
        was = kept if is_outside else taken.root + kept
        # A table outside the lake is copied into it, under an unused name.
        path = lake.new_location(names[id], id[:16]).rpartition("/")[2] if is_outside else kept
        yield _TableJob(id, names[id], was, path, bool(row["managed"]), versions.get(id, []))


def _copy(
    job: _TableJob, lake: Lake, target: Lake, name: str, alive: set[str]
) -> tuple[CopiedTable, list[SkippedVersion]]:
    place = lake.place(job.was)
    known: dict[str, int] = {}
    for each in job.recorded if job.is_managed else ():
        known[each.branch] = max(each.version, known.get(each.branch, 0))
    heads = tables.find_moment(place, known)
    to = archive.folder_of(target, archive.place_of(target, archive.LAKE, job.path), job.was)
    with holds.hold_versions(place, name, heads, alive):
        done = tables.copy_table(place, to, heads, job.recorded)
    left_out = {
        (flaw.branch, flaw.version): SkippedVersion(
            job.name,
            flaw.branch,
            flaw.version,
            f"{flaw.path} {flaw.wrong}".strip(),
            flaw.version == heads.get(flaw.branch),
        )
        for flaw in done.flaws
    }
    copied = CopiedTable(job.id, job.name, job.path, job.was, done.files, done.bytes)
    return copied, list(left_out.values())


def _without(rows: Dump, jobs: Iterable[_TableJob], left_out: Iterable[SkippedVersion]) -> Dump:
    """The rows, with each table at its copy's place, without the versions that were skipped."""
    paths, ids = {job.id: job.path for job in jobs}, {job.name: job.id for job in jobs}
    gone = {(ids[each.table], each.branch, each.version) for each in left_out}
    tables_, versions = rows["tables"], rows["table_versions"]
    id, location = tables_.columns.index("id"), tables_.columns.index("location")
    for row in tables_.rows:
        row[location] = paths[row[id]]
    at = [versions.columns.index(column) for column in ("table_id", "branch", "version")]
    versions.rows[:] = [row for row in versions.rows if tuple(row[n] for n in at) not in gone]
    return rows
