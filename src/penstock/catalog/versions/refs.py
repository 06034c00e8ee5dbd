"""Tags and branches: names for versions, and histories beside main.

They are files in the table's folder, where every Lance client sees them; the catalog checks that
the versions they name exist, records each change, and deletes the records of a deleted branch's
versions.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import computed_columns
from penstock.catalog.data import datasets
from penstock.catalog.names import idempotency, transactions
from penstock.catalog.versions import reconcile, versions
from penstock.database.interface import Transaction
from penstock.errors import (
    BranchAlreadyExists,
    BranchNotFound,
    ConcurrentCommit,
    PenstockError,
    TagAlreadyExists,
    TagNotFound,
    VersionNotFound,
)
from penstock.jobs.doors import leftovers
from penstock.lance import refs
from penstock.lance.doors import lance
from penstock.lance.refs import Branch, Tag
from penstock.lance.session.remote import Location
from penstock.lance.storage.lake import Place
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.tables import MAIN, Table

R = TypeVar("R")

PAUSE_SECONDS = 0.02
# Creating a branch takes milliseconds; deleting one takes longer the more files it has.
CLAIM_SECONDS = 600
CLAIM_WAIT_SECONDS = 10


async def list_tags(catalog: Catalog, table: Table, page: PageRequest) -> Page[tuple[str, Tag]]:
    return await _list(catalog, table, page, refs.TAGS, refs.find_tag)


async def get_tag(catalog: Catalog, table: Table, name: str) -> Tag:
    found = await catalog.lake.run(refs.find_tag, catalog.lake.place(table.location), name)
    if found is None:
        raise TagNotFound(f"table {table} has no tag {name!r}", detail="list the table's tags")
    return found


async def create_tag(
    catalog: Catalog, table: Table, name: str, branch: str, version: int, origin: Origin = NOBODY
) -> str:
    """Name a version of a branch; returns the transaction."""
    target = await reconcile.get_version_of_branch(catalog, table, branch, version)
    tag = Tag(version, branch or None, target.manifest_size)
    place = catalog.lake.place(table.location)
    async with _noted(catalog, "CreateTableTag", table, name, origin) as transaction:
        if not await catalog.lake.run(refs.create_tag, place, name, tag):
            raise TagAlreadyExists(
                f"table {table} has a tag {name!r} already",
                detail="update it, or choose another name",
            )
        await _check_tagged(catalog, table, name, tag)
    return transaction


async def update_tag(
    catalog: Catalog, table: Table, name: str, branch: str, version: int, origin: Origin = NOBODY
) -> str:
    """Move a tag to another version; returns the transaction."""
    tag = await get_tag(catalog, table, name)
    was = (tag.version, tag.branch)
    target = await reconcile.get_version_of_branch(catalog, table, branch, version)
    tag.version, tag.branch, tag.manifest_size = version, branch or None, target.manifest_size
    async with _noted(catalog, "UpdateTableTag", table, name, origin, was) as transaction:
        await catalog.lake.run(refs.update_tag, catalog.lake.place(table.location), name, tag)
        await _check_tagged(catalog, table, name, tag)
    return transaction


async def delete_tag(catalog: Catalog, table: Table, name: str, origin: Origin = NOBODY) -> str:
    tag = await get_tag(catalog, table, name)
    was = (tag.version, tag.branch)
    async with _noted(catalog, "DeleteTableTag", table, name, origin, was) as transaction:
        await catalog.lake.run(refs.delete_tag, catalog.lake.place(table.location), name)
    return transaction


async def list_branches(
    catalog: Catalog, table: Table, page: PageRequest
) -> Page[tuple[str, Branch]]:
    return await _list(catalog, table, page, refs.BRANCHES, refs.find_branch)


async def create_branch(
    catalog: Catalog,
    table: Table,
    name: str,
    source: str,
    version: int | None,
    origin: Origin = NOBODY,
) -> str | None:
    """Start a branch at a version of another, by default the newest."""
    async with _claim(catalog, table, name):
        # With the claim, from which on no clean-up takes it.
        start = (await reconcile.get_version_of_branch(catalog, table, source, version)).version
        if await _exists(catalog, table, name):
            raise BranchAlreadyExists(
                f"table {table} has a branch {name!r} already",
                detail="choose another name, or delete it first",
            )
        await datasets.change(
            catalog,
            table,
            source,
            lambda dataset: dataset.create_branch(name, (source or None, start)),
            origin,
            attempts=1,
        )
    return await find_transaction(catalog, table, name, start)


async def delete_branch(catalog: Catalog, table: Table, name: str, origin: Origin = NOBODY) -> str:
    """Delete a branch that nothing refers to, with its files and the records of its versions."""
    place = catalog.lake.place(table.location)
    async with _claim(catalog, table, name):
        if not await _exists(catalog, table, name):
            raise BranchNotFound(
                f"table {table} has no branch {name!r}", detail="list the table's branches"
            )
        if users := await catalog.lake.run(refs.find_references, place, name):
            raise ConcurrentCommit(
                f"branch {name!r} of table {table} is referenced by " + ", ".join(users[:20]),
                detail="delete these first",
            )
        await catalog.lake.run(refs.delete_branch, place, name)
        location = Location(place.uri, MAIN, catalog.lake.options)
        await catalog.lake.run(leftovers.forget_branch, location, name)
        # A branch of this name may be created again, with other content under the same numbers.
        catalog.datasets.forget(place)
        id, gone = await catalog.database.write(_forget_branch, table, name, origin)
        await computed_columns.sweep(catalog, table, gone)
        return id


async def restore(
    catalog: Catalog, table: Table, branch: str, version: int, origin: Origin = NOBODY
) -> int:
    """Make an old version the newest of its branch; returns the new number."""
    await reconcile.get_version_of_branch(catalog, table, branch, version)

    async def is_there(tx: Transaction) -> None:
        # A clean-up may take it meanwhile, with files that the new version would name.
        if await versions.find(tx, table.id, branch, version) is None:
            raise _gone(table, version)

    def run(dataset: "lance.LanceDataset") -> int:
        return refs.restore(dataset, version)

    try:
        return await datasets.change(catalog, table, branch, run, origin, guard=is_there)
    except PenstockError as error:
        # Lance may have missed files of it first.
        if await versions.find(catalog.database, table.id, branch, version) is None:
            raise _gone(table, version) from error
        raise


async def find_transaction(catalog: Catalog, table: Table, branch: str, version: int) -> str | None:
    """Lance's id of the commit that made a version."""
    found = await versions.find(catalog.database, table.id, branch, version)
    return found.transaction_id or None if found is not None else None


async def _check_tagged(catalog: Catalog, table: Table, name: str, tag: Tag) -> None:
    """Take a tag back whose version a clean-up took before it saw the tag."""
    found = await versions.find(catalog.database, table.id, tag.branch or MAIN, tag.version)
    if found is None:
        await catalog.lake.run(refs.delete_tag, catalog.lake.place(table.location), name)
        raise _gone(table, tag.version)


def _gone(table: Table, version: int) -> VersionNotFound:
    return VersionNotFound(
        f"version {version} of table {table} was cleaned up meanwhile",
        detail="list the table's versions to see which there are",
    )


async def _list(
    catalog: Catalog,
    table: Table,
    page: PageRequest,
    folder: str,
    find: Callable[[Place, str], R | None],
) -> Page[tuple[str, R]]:
    place = catalog.lake.place(table.location)

    def read() -> list[tuple[str, R]]:
        names = [n for n in refs.list_names(place, folder) if n > (page.after or "")]
        found = ((name, find(place, name)) for name in names[: page.limit + 1])
        return [(name, ref) for name, ref in found if ref is not None]

    found = await catalog.lake.run(read)
    return cut_page(page, found, [name for name, _ in found])


async def _exists(catalog: Catalog, table: Table, branch: str) -> bool:
    """Whether anything of a branch exists; leftovers of a crash can be deleted."""
    place = catalog.lake.place(table.location)
    if await catalog.lake.run(refs.find_branch, place, branch) is not None:
        return True
    return await reconcile.reconcile(catalog, table, branch)


@asynccontextmanager
async def _claim(catalog: Catalog, table: Table, branch: str) -> AsyncIterator[None]:
    """Be the only one, across all servers, that creates or deletes a branch of this name.

    Otherwise two creators from different versions would both succeed and share one branch.
    """
    key = f"branch:{table.id}:{branch}"
    deadline = time.monotonic() + CLAIM_WAIT_SECONDS
    while not await catalog.database.write(_take_claim, key):
        if time.monotonic() > deadline:
            raise ConcurrentCommit(
                f"branch {branch!r} of table {table} is being created or deleted",
                detail="retry in a moment",
            )
        await asyncio.sleep(random.uniform(0, PAUSE_SECONDS * 2))
    try:
        yield
    finally:
        await catalog.database.write(_drop_claim, key)


async def _take_claim(tx: Transaction, key: str) -> bool:
    """Take the claim if it is free, or if its holder crashed long ago."""
    taken = await tx.fetch(
        "INSERT INTO locks (name, taken) VALUES ($1, now_millis()) "
        "ON CONFLICT (name) DO UPDATE SET taken = excluded.taken "
        "WHERE locks.taken < excluded.taken - $2 RETURNING name",
        key,
        CLAIM_SECONDS * 1000,
    )
    return bool(taken)


async def _drop_claim(tx: Transaction, key: str) -> None:
    await tx.fetch("DELETE FROM locks WHERE name = $1", key)


@asynccontextmanager
async def _noted(
    catalog: Catalog,
    operation: str,
    table: Table,
    name: str,
    origin: Origin,
    was: tuple[int, str | None] | None = None,
) -> AsyncIterator[str]:
    """Record a change before it is made in files; withdraws the record when it is refused.

    So a recorded key stands for a change that was made, or that a repetition makes if the tag has
    not changed since.
    """
    target = f"{table} {name}"
    transaction = await catalog.database.write(
        transactions.record, operation, target, origin, notes={"was": was}
    )
    try:
        yield transaction
    except PenstockError:
        await catalog.database.write(_take_back, transaction, origin)
        raise


async def _take_back(tx: Transaction, transaction: str, origin: Origin) -> None:
    await transactions.forget(tx, transaction)
    await idempotency.forget(tx, origin)


async def _forget_branch(
    tx: Transaction, table: Table, branch: str, origin: Origin
) -> tuple[str, set[str]]:
    before = await computed_columns.list_bindings(tx, table)
    await tx.fetch(
        "DELETE FROM table_versions WHERE table_id = $1 AND branch = $2", table.id, branch
    )
    await tx.fetch("DELETE FROM columns WHERE table_id = $1 AND branch = $2", table.id, branch)
    gone = before - await computed_columns.list_bindings(tx, table)
    return await transactions.record(tx, "DeleteTableBranch", f"{table} {branch}", origin), gone
