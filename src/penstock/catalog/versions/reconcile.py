"""Reconcile the records of a table's versions with the files on storage.

Others may commit by path, bypassing the catalog, or clean up old versions. Their commits are
adopted when they are seen, removed versions are deleted from the records, interrupted commits are
finished, and staged manifests that never became a version are collected.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.catalog.versions import versions
from penstock.catalog.versions.settling import SettleOutcome, version_key
from penstock.database.interface import Transaction
from penstock.errors import BranchNotFound, Unavailable, VersionNotFound
from penstock.lance.commit.manifest import SCHEMES, manifest_name, parse_name, versions_folder
from penstock.lance.storage import files
from penstock.lance.storage.files import FileEntry
from penstock.lance.storage.lake import Place
from penstock.model.branches import show_branch
from penstock.model.tables import MAIN, Table, TableVersion


@dataclass(frozen=True, slots=True)
class Differences:
    """What to change so that the records agree with storage."""

    adopt: list[TableVersion]
    follow: list[TableVersion]
    forget: list[int]
    finish: list[TableVersion]
    collect: list[str]


def plan_reconcile(
    records: Sequence[TableVersion],
    entries: Sequence[FileEntry],
    folder: str,
    stale_before_millis: int,
) -> Differences:
    """Compare records (read first) with the folder's files (listed after)."""
    head = max((r.version for r in records), default=0)
    named = {found[0]: entry for entry in entries if (found := parse_name(entry.name))}
    names = {entry.name for entry in entries}
    staged = {r.staged_path for r in records if not r.settled}
    return Differences(
        adopt=[_adopted(v, folder, e) for v, e in sorted(named.items()) if v > head],
        follow=[
            replace(r, manifest_path=path)
            for r in records
            if r.settled
            and r.version in named
            and (path := f"{folder}/{named[r.version].name}") != r.manifest_path
            and r.manifest_path.rpartition("/")[2] not in names
        ],
        forget=[r.version for r in records if r.settled and r.version not in named],
        finish=[r for r in records if not r.settled],
        collect=[
            f"{folder}/{e.name}"
            for e in entries
            if ".manifest-" in e.name
            and e.modified_millis < stale_before_millis
            and f"{folder}/{e.name}" not in staged
        ],
    )


async def reconcile(catalog: Catalog, table: Table, branch: str) -> bool:
    """Bring the records of one branch up to date; True when it has any version."""
    records, now_millis = await catalog.database.read(_read_records, table.id, branch)
    place, folder = catalog.lake.place(table.location), versions_folder(branch)
    entries = await catalog.lake.run(files.list_folder, place, folder)
    if records and not entries and files.is_missing(place):
        # More likely a missing disk than a table that someone deleted.
        raise Unavailable(
            f"the folder {table.location} of table {table} is missing",
            detail="mount or restore it; drop or deregister the table if it is gone for good",
        )
    differences = plan_reconcile(
        records, entries, folder, now_millis - catalog.staged_seconds * 1000
    )
    for version in differences.finish:
        await finish(catalog, table, branch, version)
    if differences.adopt or differences.follow or differences.forget:
        await catalog.database.write(_record, table.id, branch, differences)
    for path in differences.collect:
        await catalog.lake.run(files.remove, place, path)
    return any(parse_name(entry.name) for entry in entries) or bool(differences.finish)


async def look_ahead(catalog: Catalog, table: Table, branch: str) -> TableVersion | None:
    """Adopt commits by path on top of the newest record; costs one look at storage without any.

    Returns the newest record then, listed or not.
    """
    head = await versions.find_head(catalog.database, table.id, branch)
    if head is not None and _is_settled(catalog, table, branch, head):
        place = catalog.lake.place(table.location)
        if not await catalog.lake.run_briefly(place, _has_moved_on, place, branch, head):
            return head
    await reconcile(catalog, table, branch)
    return await versions.find_head(catalog.database, table.id, branch)


def _has_moved_on(place: Place, branch: str, head: TableVersion) -> bool:
    """Whether others committed after the newest record, or removed its manifest; blocks."""
    folder = versions_folder(branch)
    following = [f"{folder}/{manifest_name(head.version + 1, scheme)}" for scheme in SCHEMES]
    return any(files.exists(place, path) for path in following) or not files.exists(
        place, head.manifest_path
    )


async def adopt_one(catalog: Catalog, table: Table, branch: str, version: int) -> bool:
    """Record a version that is on storage though its record was deleted."""
    found = await _find_on_storage(catalog, table, branch, version)
    if found is None:
        return False
    only = Differences([found], [], [], [], [])
    await catalog.database.write(_record, table.id, branch, only)
    return True


def _is_settled(catalog: Catalog, table: Table, branch: str, version: TableVersion) -> bool:
    return version.settled or catalog.settler.knows(version_key(table.id, branch, version))


async def finish(
    catalog: Catalog, table: Table, branch: str, version: TableVersion
) -> SettleOutcome:
    """Settle a recorded version; withdraws a record that cannot be settled."""
    place = catalog.lake.place(table.location)
    outcome = await catalog.settler.settle(place, version)
    if outcome is SettleOutcome.SETTLED:
        catalog.settler.add([version_key(table.id, branch, version)])
        return outcome
    winner = await _find_on_storage(catalog, table, branch, version.version)
    await catalog.database.write(_replace, table.id, branch, version, winner)
    await catalog.lake.run(files.remove, place, version.staged_path)
    return outcome


async def make_readable(
    catalog: Catalog, table: Table, branch: str, found: Sequence[TableVersion]
) -> bool:
    """Finish commits that others just recorded; False when a record was withdrawn."""
    unsettled = [v for v in found if not _is_settled(catalog, table, branch, v)]
    outcomes = [await finish(catalog, table, branch, v) for v in unsettled]
    return all(outcome is SettleOutcome.SETTLED for outcome in outcomes)


async def get_version(
    catalog: Catalog, table: Table, branch: str, version: int | None
) -> TableVersion:
    """Get one version, by default the newest; its manifest has its final name."""
    database, place = catalog.database, catalog.lake.place(table.location)
    if version is None:
        found = await look_ahead(catalog, table, branch)
        if found is not None and found.hidden:
            found = await versions.find_latest(database, table.id, branch)
        if found is not None and not await make_readable(catalog, table, branch, [found]):
            found = await versions.find_latest(database, table.id, branch)
    else:
        found = await versions.find(database, table.id, branch, version)
        if found is None:
            await look_ahead(catalog, table, branch)
        elif not _is_settled(catalog, table, branch, found) or not await catalog.lake.run_briefly(
            place, files.exists, place, found.manifest_path
        ):
            await reconcile(catalog, table, branch)
        found = await versions.find(database, table.id, branch, version)
        if found is not None and not await make_readable(catalog, table, branch, [found]):
            found = await versions.find(database, table.id, branch, version)
    if found is None:
        wanted = "any version" if version is None else f"version {version}"
        raise VersionNotFound(
            f"table {table} does not have {wanted} on branch {show_branch(branch)}",
            detail="list the table's versions to see which there are",
        )
    return found


async def get_version_of_branch(
    catalog: Catalog, table: Table, branch: str, version: int | None
) -> TableVersion:
    """Like `get_version`, but a missing branch has its own error."""
    try:
        return await get_version(catalog, table, branch, version)
    except VersionNotFound:
        await check_branch_exists(catalog, table, branch)
        raise


async def check_branch_exists(catalog: Catalog, table: Table, branch: str) -> None:
    """Raise when a table has no such branch; main exists before its first version."""
    if (
        branch != MAIN
        and await versions.find_head(catalog.database, table.id, branch) is None
        and not await reconcile(catalog, table, branch)
    ):
        raise BranchNotFound(
            f"table {table} has no branch {branch!r}", detail="list the table's branches"
        )


async def _find_on_storage(
    catalog: Catalog, table: Table, branch: str, version: int
) -> TableVersion | None:
    place, folder = catalog.lake.place(table.location), versions_folder(branch)
    for entry in await catalog.lake.run(files.list_folder, place, folder):
        if (named := parse_name(entry.name)) and named[0] == version:
            return _adopted(version, folder, entry)
    return None


def _adopted(version: int, folder: str, entry: FileEntry) -> TableVersion:
    path = f"{folder}/{entry.name}"
    return TableVersion(version, path, entry.size, entry.modified_millis, entry.e_tag)


async def _replace(
    tx: Transaction, table_id: str, branch: str, lost: TableVersion, winner: TableVersion | None
) -> None:
    await versions.withdraw(tx, table_id, branch, lost)
    # A repetition of that commit under its key must not hear that it succeeded.
    await idempotency.forget_effect(tx, lost.transaction_id)
    if winner is not None and await tx.fetch_one("SELECT 1 FROM tables WHERE id = $1", table_id):
        await versions.adopt(tx, table_id, branch, [winner])


async def _read_records(
    tx: Transaction, table_id: str, branch: str
) -> tuple[list[TableVersion], int]:
    rows = await tx.fetch(
        f"SELECT {versions.COLUMNS} FROM table_versions WHERE table_id = $1 AND branch = $2 "
        "ORDER BY version",
        table_id,
        branch,
    )
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    return [versions.to_version(row) for row in rows], clock[0]


async def _record(tx: Transaction, table_id: str, branch: str, differences: Differences) -> None:
    for version in differences.forget:
        await tx.fetch(
            "DELETE FROM table_versions "
            "WHERE table_id = $1 AND branch = $2 AND version = $3 AND settled = 1",
            table_id,
            branch,
            version,
        )
    for moved in differences.follow:
        await tx.fetch(
            "UPDATE table_versions SET manifest_path = $4 "
            "WHERE table_id = $1 AND branch = $2 AND version = $3 AND settled = 1",
            table_id,
            branch,
            moved.version,
            moved.manifest_path,
        )
    # The table may have been dropped meanwhile; then there is nothing to record.
    if await tx.fetch_one("SELECT 1 FROM tables WHERE id = $1", table_id):
        await versions.adopt(tx, table_id, branch, differences.adopt)
