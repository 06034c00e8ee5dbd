"""Clones: a new table with the rows that another one had in some version.

The files are copied, so the source may be changed or dropped. Until the clone is in the catalog its
folder counts as one that is being removed, so that a crash leaves nothing for ever.
"""

from dataclasses import dataclass

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.names import removals, tables, transactions
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions import reconcile
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, OutsideLake, TableNotFound
from penstock.lance.copies.clone import clone as clone_files
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table


@dataclass(frozen=True, slots=True)
class Clone:
    table: Table
    version: int
    transaction_id: str


async def get_source(catalog: Catalog, location: str) -> Table:
    """The table at a location."""
    try:
        normal = catalog.lake.accept(location, "source_location")
    except OutsideLake as error:
        raise missing_source(location) from error
    found = await catalog.database.read(tables.find_at, normal)
    if found is None:
        raise missing_source(location)
    return found


def missing_source(location: str) -> TableNotFound:
    """The error for a location without a table, and for one that the caller may not see."""
    return TableNotFound(
        f"no table of this catalog is at {location!r}",
        detail="send the location of a table that you may read",
    )


async def clone(
    catalog: Catalog,
    new: NewTable,
    source: Table,
    branch: str,
    version: int | None,
    origin: Origin = NOBODY,
) -> Clone:
    """Copy a version of a table, and put the copy into the catalog under a new name."""
    await tables.check_new(catalog.database, new)
    place, options = catalog.lake.place(new.table.location), catalog.lake.options
    held = await catalog.database.write(removals.hold, place.location)
    try:
        made = await datasets.read(
            catalog,
            source,
            branch,
            version,
            lambda dataset: clone_files(dataset, branch, place, options),
        )
        crash_point("clone written")
        transaction = await catalog.database.write(_record, new, held, origin)
    except BaseException:
        await catalog.database.write(removals.release, place.location)
        raise
    await reconcile.reconcile(catalog, new.table, MAIN)
    return Clone(new.table, made, transaction)


async def _record(tx: Transaction, new: NewTable, held: int, origin: Origin) -> str:
    if not await removals.let_go(tx, new.table.location, held):
        raise ConcurrentCommit(
            "the copy took so long that it was given up", detail="clone the table again"
        )
    await tables.insert_in(tx, new, origin)
    return await transactions.record(tx, "CloneTable", str(new.table), origin)
