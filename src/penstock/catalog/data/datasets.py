"""Reading and changing a table's data: which version, in which thread, with whose arbitration.

Readers share handles; a change opens a handle of its own whose commits come back to the catalog,
so a version made here is listed, managed and arbitrated like everybody's.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import tables
from penstock.catalog.versions import reconcile, versions
from penstock.catalog.versions.commits import Operation
from penstock.errors import ConcurrentCommit, InvalidTableState, VersionNotFound
from penstock.lance.errors import naming, translated
from penstock.lance.storage.data_threads import Deadline
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table, TableVersion
from penstock.retries import spread

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.session.bridge import Bridge

T = TypeVar("T")

ATTEMPTS = 20
PAUSE_SECONDS = 0.02


async def read(
    catalog: Catalog,
    table: Table,
    branch: str,
    version: int | None,
    work: "Callable[[LanceDataset], T]",
    *,
    is_brief: bool = False,
    deadline: Deadline | None = None,
) -> T:
    """Run work on one version, the newest of the branch when none is named.

    Brief work, which only looks at what an open dataset knows, does not wait for a worker then.
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
    work: "Callable[[LanceDataset], T]",
    origin: Origin = NOBODY,
    attempts: int = ATTEMPTS,
) -> T:
    """Run work that commits; when a commit in between does not allow it, on what is newest then.

    Work that may be run again must be right on any version: it looks up what it needs.
    """
    for pause in spread(PAUSE_SECONDS, attempts - 1):
        try:
            return await _change_once(catalog, table, branch, work, origin)
        except ConcurrentCommit:
            await asyncio.sleep(pause)
    return await _change_once(catalog, table, branch, work, origin)


async def _change_once(
    catalog: Catalog,
    table: Table,
    branch: str,
    work: "Callable[[LanceDataset], T]",
    origin: Origin,
) -> T:
    await _get_version(catalog, table, branch, None)
    bridge = make_bridge(catalog, table, origin)
    place = catalog.lake.place(table.location)

    def run() -> T:
        with translated(bridge):
            dataset = catalog.datasets.open_to_commit(place, branch, bridge, list(table.identifier))
            with naming(place, dataset):
                return work(dataset)

    return await catalog.workers.run(run)


def make_bridge(
    catalog: Catalog, table: Table, origin: Origin = NOBODY, before: Sequence[Operation] = ()
) -> "Bridge":
    """The way of pylance's commits to this catalog; `before` goes into the first one."""
    # Imported here: it brings pylance's models along, which a server of metadata never needs.
    from penstock.catalog.versions.arbiter import TableArbiter
    from penstock.lance.session.bridge import Bridge

    return Bridge(TableArbiter(catalog, table, origin, before), table.location)


async def find_newest(catalog: Catalog, table: Table, branch: str) -> int | None:
    """The number of the newest version, with what others committed by path; None without any."""
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
