"""Rows: create a table with them, insert, merge, update and delete them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.data.appends import Appended, get_appender
from penstock.catalog.names import tables
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions import reconcile
from penstock.catalog.versions.commits import Declare
from penstock.errors import TableAlreadyExists, TableNotFound
from penstock.lance.errors import translated
from penstock.lance.write import first_version, rows, uploads
from penstock.lance.write.rows import Merge, Merged
from penstock.lance.write.uploads import RowStream, Source, Written
from penstock.model.identifiers import show
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class CreatedTable:
    table: Table
    version: int
    transaction_id: str | None


async def create(
    catalog: Catalog, new: NewTable, mode: str, source: "Source | bytes", origin: Origin = NOBODY
) -> CreatedTable:
    """Create a table with rows; mode is create, exist_ok or overwrite."""
    try:
        table = await tables.get(catalog.database, new.table.identifier)
    except TableNotFound:
        return await _create_new(catalog, new, source, origin)
    if await tables.has_data(catalog, table):
        if mode == "create":
            raise TableAlreadyExists(
                f"table {show(table.identifier)} already exists",
                detail="use mode exist_ok to keep it, or overwrite to replace its rows",
            )
        if mode == "exist_ok":
            found = await reconcile.get_version(catalog, table, MAIN, None)
            return CreatedTable(table, found.version, None)
        tables.check_rows(table)
        done = await overwrite(catalog, table, MAIN, source, origin)
    else:
        done = await insert(catalog, table, MAIN, source, origin)
    return CreatedTable(table, done.version, done.transaction_id)


async def insert(
    catalog: Catalog, table: Table, branch: str, source: "Source | bytes", origin: Origin = NOBODY
) -> Appended:
    """Append rows."""
    if branch != MAIN and not await datasets.has_version(catalog, table, branch):
        await reconcile.get_version_of_branch(catalog, table, branch, None)
    appender = get_appender(catalog, table, branch)
    if isinstance(source, bytes):
        with catalog.workers.admitted():
            return await appender.append(source, origin)
    place = catalog.lake.place(table.location)

    def write(dataset: "LanceDataset | None") -> Written:
        stream = RowStream(source, catalog.max_batch_bytes)
        if dataset is not None:
            uploads.check_rows(dataset.schema, stream)
        return uploads.write_aside(place, branch, catalog.datasets, stream, dataset)

    if await datasets.has_version(catalog, table, branch):
        written = await datasets.read(catalog, table, branch, None, write)
    else:
        written = await catalog.workers.run(_translating(write), None)
    return await appender.append(written, origin)


async def overwrite(
    catalog: Catalog, table: Table, branch: str, source: "Source | bytes", origin: Origin = NOBODY
) -> Appended:
    """Replace all rows, and the schema with them."""
    place, options = catalog.lake.place(table.location), catalog.lake.options
    bridge = datasets.make_bridge(catalog, table, origin)
    id = list(table.identifier)

    def run() -> Appended:
        with translated(bridge):
            known = catalog.datasets.open_to_commit(place, branch, bridge, id).schema
            stream = RowStream(source, catalog.max_batch_bytes)
            written = uploads.write_aside(place, branch, catalog.datasets, stream, None, known)
            # Opened anew: a long upload may have taken minutes.
            base = catalog.datasets.open_to_commit(place, branch, bridge, id)
            dataset = rows.commit_overwrite(base, written, bridge, id, options)
            return Appended(written.rows, dataset.version, bridge.transaction_id)

    return await catalog.workers.run(run)


async def merge(
    catalog: Catalog,
    table: Table,
    branch: str,
    source: "Source | bytes",
    how: Merge,
    origin: Origin = NOBODY,
) -> Merged:
    """Merge rows by key. A long stream is kept on storage first, because a merge may be retried.

    A table that is only declared is made first, without rows: of several merges that meet it, each
    then finds the rows of those before it.
    """
    place = catalog.lake.place(table.location)
    opened: list[RowStream] = []
    if branch == MAIN and not await datasets.has_version(catalog, table, branch):
        opened = [await catalog.workers.run(RowStream, source, catalog.max_batch_bytes)]
        rows.check_keys(opened[0].schema, how.on)
        await insert(catalog, table, branch, uploads.write_empty(opened[0].schema), origin)

    def work(dataset: "LanceDataset") -> Merged:
        stream = opened.pop() if opened else RowStream(source, catalog.max_batch_bytes)
        uploads.check_rows(dataset.schema, stream)
        if stream.is_whole:
            return rows.merge(dataset, stream, how)
        with uploads.spooled(place, catalog.datasets, stream) as spool:
            return rows.merge(dataset, spool, how)

    # A stream can be read only once.
    attempts = datasets.ATTEMPTS if isinstance(source, bytes) else 1
    # Lance lets merges that run at once insert the same key twice, so here they take turns.
    lock = catalog.merge_locks.setdefault((table.id, branch), asyncio.Lock())
    async with lock:
        return await datasets.change(catalog, table, branch, work, origin, attempts)


async def _create_new(
    catalog: Catalog, new: NewTable, source: "Source | bytes", origin: Origin
) -> CreatedTable:
    """Write the rows into the table's own new folder, then declare and commit in one."""
    table = new.table
    place = catalog.lake.place(table.location)
    # Told before anything is written, and before gigabytes are uploaded for what can't be.
    await tables.check_new(catalog.database, new)
    if new.is_placed and await catalog.lake.run(first_version.is_occupied, place):
        raise TableAlreadyExists(
            f"location {table.location!r} holds files that no table here has",
            detail="register them as a table, or choose a location of its own",
        )
    bridge = datasets.make_bridge(catalog, table, origin, before=[Declare(new)])

    def write() -> Written:
        stream = RowStream(source, catalog.max_batch_bytes)
        if new.is_placed and not stream.is_whole:
            # Others may write to a place that a client chose: what is cut short goes as a whole.
            return uploads.write_aside(place, MAIN, catalog.datasets, stream, None)
        return uploads.write_new(catalog.datasets, place.location, stream)

    version = await catalog.workers.run(
        lambda: first_version.commit(
            place,
            write,
            bridge,
            list(table.identifier),
            catalog.lake.options,
            is_alone=not new.is_placed,
        )
    )
    return CreatedTable(table, version, bridge.transaction_id)


def _translating(
    work: "Callable[[LanceDataset | None], Written]",
) -> "Callable[[LanceDataset | None], Written]":
    def run(dataset: "LanceDataset | None") -> Written:
        with translated():
            return work(dataset)

    return run
