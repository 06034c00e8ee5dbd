"""Read and change a table's data: choose the version, the thread and the arbiter of commits.

Readers share handles. A change opens its own handle, whose commits go through the catalog, so
versions made here are listed, managed and arbitrated like everyone else's.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.catalog.catalog import Catalog
from penstock.catalog.doors import arbiter
from penstock.catalog.names import tables
from penstock.catalog.versions import reconcile, versions
from penstock.catalog.versions.commits import Guard, Operation
from penstock.errors import ConcurrentCommit, InvalidTableState, VersionNotFound
from penstock.lance.doors import bridge, lance
from penstock.lance.errors import naming, translated
from penstock.lance.storage.data_threads import Deadline
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table, TableVersion
from penstock.retries import spread

T = TypeVar("T")

ATTEMPTS = 20
PAUSE_SECONDS = 0.02


async def read(
    catalog: Catalog,
    table: Table,
    branch: str,
    version: int | None,
    work: "Callable[[lance.LanceDataset], T]",
    *,
    is_brief: bool = False,
    deadline: Deadline | None = None,
) -> T:
    """Run work on one version, by default the newest of the branch.

    Brief work, which only looks at an open dataset, does not wait for a worker.
    """
    found = await _get_version(catalog, table, branch, version)
    place = catalog.lake.place(table.location)
    if is_brief and (opened := catalog.datasets.find(place, branch, found)) is not None:
        with translated():
            return work(opened)

    def run() -> T:
        with translated():
            dataset = catalog.datasets.open(place, branch, found)
            with naming(place, dataset):
                return work(dataset)

    if deadline is not None:
        return await catalog.workers.run_until(deadline, run)
    return await catalog.workers.run(run)


async def change(
    catalog: Catalog,
    table: Table,
    branch: str,
    work: "Callable[[lance.LanceDataset], T]",
    origin: Origin = NOBODY,
    attempts: int = ATTEMPTS,
    guard: Guard | None = None,
) -> T:
    """Run work that commits; repeats it on the newest version when another commit conflicts.

    Work that may be repeated must be right on any version, so it looks up what it needs. `guard`
    may refuse the commit, in its transaction.
    """
    for pause in spread(PAUSE_SECONDS, attempts - 1):
        try:
            return await _change_once(catalog, table, branch, work, origin, guard)
        except ConcurrentCommit:
            await asyncio.sleep(pause)
    return await _change_once(catalog, table, branch, work, origin, guard)


async def _change_once(
    catalog: Catalog,
    table: Table,
    branch: str,
    work: "Callable[[lance.LanceDataset], T]",
    origin: Origin,
    guard: Guard | None,
) -> T:
    await _get_version(catalog, table, branch, None)
    bridge = make_bridge(catalog, table, origin, guard=guard)
    place = catalog.lake.place(table.location)

    def run() -> T:
        with translated(bridge):
            dataset = catalog.datasets.open_to_commit(place, branch, bridge, list(table.identifier))
            with naming(place, dataset):
                return work(dataset)

    return await catalog.workers.run(run)


def make_bridge(
    catalog: Catalog,
    table: Table,
    origin: Origin = NOBODY,
    before: Sequence[Operation] = (),
    guard: Guard | None = None,
) -> "bridge.Bridge":
    """The bridge from pylance's commits to this catalog; `before` runs in the first commit."""
    decides = arbiter.TableArbiter(catalog, table, origin, before, guard)
    return bridge.Bridge(decides, table.location)


async def find_newest(catalog: Catalog, table: Table, branch: str) -> int | None:
    """The number of the newest version, including commits by path; None without any."""
    head = await reconcile.look_ahead(catalog, table, branch)
    return None if head is None else head.version


async def has_version(catalog: Catalog, table: Table, branch: str) -> bool:
    """Whether the branch has any version, committed through the catalog or by path."""
    if await versions.find_head(catalog.database, table.id, branch) is not None:
        return True
    return await reconcile.reconcile(catalog, table, branch)


async def _get_version(
    catalog: Catalog, table: Table, branch: str, version: int | None
) -> TableVersion:
    try:
        return await reconcile.get_version_of_branch(catalog, table, branch, version)
    except VersionNotFound:
        if branch == MAIN and not await tables.has_data(catalog, table):
            raise InvalidTableState(
                f"table {table} is declared, but holds no data yet",
                detail="create it by inserting rows",
            ) from None
        raise
