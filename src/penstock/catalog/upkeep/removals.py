"""Remove old versions of a table that nobody needs, with the files that only they had.

First the records go, in a transaction that looks once more at what needs them; from then on nobody
opens these versions through the catalog. Then the files go. A crash in between leaves files of
versions without records, which the next removal finds on storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.names import tables, transactions
from penstock.catalog.upkeep import needs, plans
from penstock.catalog.upkeep.locks import alone
from penstock.catalog.upkeep.plans import Needed, RemovalPlan, Retention
from penstock.catalog.versions import reconcile, versions
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, TableNotFound
from penstock.lance.doors import lance
from penstock.lance.upkeep import removal
from penstock.lance.upkeep.removal import Removed
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table

# So many versions are removed at once.
MOST_VERSIONS = 200


@dataclass(frozen=True, slots=True)
class VersionRemoval:
    """What a removal did, or would do; `versions_left` are for another one."""

    version: int
    versions_removed: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    versions_left: int = 0
    # How many versions stay, by reason.
    versions_kept: dict[str, int] = field(default_factory=dict)


async def remove_old(
    catalog: Catalog,
    table: Table,
    branch: str,
    retention: Retention,
    origin: Origin = NOBODY,
    *,
    dry_run: bool = False,
    most: int = MOST_VERSIONS,
) -> VersionRemoval:
    """Remove the oldest versions that the retention does not keep and nobody needs."""
    # Removing again changes nothing, so the request needs no key in it.
    unkeyed = replace(origin, keys=())
    async with alone(catalog, "removal", table, branch):
        head = (await reconcile.get_version_of_branch(catalog, table, branch, None)).version
        # Finishes commits whose manifests do not have their names yet.
        await reconcile.reconcile(catalog, table, branch)
        plan = await _plan(catalog, table, branch, retention)
        if dry_run:
            return VersionRemoval(head, len(plan.remove), versions_kept=plan.kept)
        chosen = plan.remove[:most]
        removed = Removed(0, 0, 0)
        if chosen:
            await catalog.database.write(_forget, table, branch, chosen, unkeyed)
            crash_point("versions forgotten")
            # A restore of one of them may have been recorded before: its manifest has to be seen.
            await reconcile.reconcile(catalog, table, branch)
        # Also without versions: for files that writers left.
        removed = await _remove_files(catalog, table, branch, chosen or [0])
        crash_point("versions removed")
        await _keep_named(catalog, table, branch, chosen)
    left = len(plan.remove) - len(chosen)
    return VersionRemoval(head, removed.versions, removed.files, removed.bytes, left, plan.kept)


async def _keep_named(catalog: Catalog, table: Table, branch: str, chosen: Sequence[int]) -> None:
    """Record those again that are still there: a tag or a branch named them at the last moment."""
    place = catalog.lake.place(table.location)
    there = await catalog.lake.run(removal.list_on_storage, place, branch) if chosen else {}
    for version in there.keys() & set(chosen):
        await reconcile.adopt_one(catalog, table, branch, version)


async def _plan(catalog: Catalog, table: Table, branch: str, retention: Retention) -> RemovalPlan:
    place = catalog.lake.place(table.location)
    stored = await catalog.lake.run(removal.list_on_storage, place, branch)
    # Read after the versions: what is needed later is newer than these.
    needed = await needs.find_needed(catalog, table, branch)
    recorded, now = await catalog.database.read(_read_times, table.id, branch)
    return plans.plan_removal({**stored, **recorded}, now, retention, needed)


async def _read_times(tx: Transaction, table_id: str, branch: str) -> tuple[dict[int, int], int]:
    rows = await tx.fetch(
        "SELECT version, timestamp_millis FROM table_versions WHERE table_id = $1 AND branch = $2",
        *(table_id, branch),
    )
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    return {row[0]: row[1] for row in rows}, clock[0]


async def _forget(
    tx: Transaction, table: Table, branch: str, chosen: Sequence[int], origin: Origin
) -> None:
    """Delete the records, unless somebody has come to need one of them since the plan."""
    if await tables.find_by_id(tx, table.id) is None:
        raise TableNotFound(f"table {table} was dropped meanwhile", detail="there is nothing to do")
    busy = await tx.fetch_one(
        "SELECT name FROM locks WHERE name LIKE $1 OR (name LIKE 'backup:%' "
        "AND taken > now_millis())",
        f"branch:{table.id}:%",
    )
    if busy is not None:
        what = "a backup is being made" if busy[0].startswith("backup:") else "a branch is made"
        raise ConcurrentCommit(f"{what} of table {table}", detail="clean up when it is done")
    needed: Needed = await needs.find_recorded(tx, table, branch)
    if not needed.versions.keys().isdisjoint(chosen):
        raise ConcurrentCommit(
            f"a version of table {table} has come to be needed", detail="clean up again"
        )
    # Nothing is left to note of what another server has removed meanwhile.
    if await versions.delete(tx, table.id, branch, plans.to_ranges(chosen)):
        await transactions.record(tx, "DeleteTableVersions", str(table), origin)


async def _remove_files(
    catalog: Catalog, table: Table, branch: str, chosen: Sequence[int]
) -> Removed:
    place = catalog.lake.place(table.location)

    def remove(dataset: "lance.LanceDataset") -> Removed:
        return removal.remove_versions(dataset, chosen)

    done = await datasets.read(catalog, table, branch, None, remove)
    catalog.datasets.forget(place)
    return done
