"""Rows: create a table with them, insert, merge, update and delete them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.data.appends import AppendResult, get_appender
from penstock.catalog.names import tables
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions import reconcile
from penstock.catalog.versions.commits import Declare
from penstock.errors import NotALanceTable, TableAlreadyExists, TableNotFound, ViewIsNoTable
from penstock.lance.doors import lance
from penstock.lance.errors import translated
from penstock.lance.write import first_version, row_changes, uploads
from penstock.lance.write.row_changes import Merge, MergeResult
from penstock.lance.write.spool import spooled
from penstock.lance.write.uploads import ReadableFile, RowStream, WrittenFragments
from penstock.model.identifiers import show
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table


@dataclass(frozen=True, slots=True)
class CreatedTable:
    table: Table
    version: int
    transaction_id: str | None


async def create(
    catalog: Catalog,
    new: NewTable,
    mode: str,
    source: "ReadableFile | bytes",
    origin: Origin = NOBODY,
) -> CreatedTable:
    """Create a table with rows; mode is create, exist_ok or overwrite."""
    try:
        table = await tables.get(catalog.database, new.table.identifier)
    except (TableNotFound, ViewIsNoTable, NotALanceTable):
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
    catalog: Catalog,
    table: Table,
    branch: str,
    source: "ReadableFile | bytes",
    origin: Origin = NOBODY,
) -> AppendResult:
    """Append rows."""
    if branch != MAIN and not await datasets.has_version(catalog, table, branch):
        await reconcile.get_version_of_branch(catalog, table, branch, None)
    appender = get_appender(catalog, table, branch)
    if isinstance(source, bytes):
        with catalog.workers.admitted():
            return await appender.append(source, origin)
    place = catalog.lake.place(table.location)

    def write(dataset: "lance.LanceDataset | None") -> WrittenFragments:
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
    catalog: Catalog,
    table: Table,
    branch: str,
    source: "ReadableFile | bytes",
    origin: Origin = NOBODY,
) -> AppendResult:
    """Replace all rows, and the schema with them."""
    place = catalog.lake.place(table.location)

    def write(dataset: "lance.LanceDataset") -> WrittenFragments:
        stream = RowStream(source, catalog.max_batch_bytes)
        return uploads.write_aside(place, branch, catalog.datasets, stream, None, dataset.schema)

    written = await datasets.read(catalog, table, branch, None, write)
    return await overwrite_with(catalog, table, branch, written, origin)


async def overwrite_with(
    catalog: Catalog, table: Table, branch: str, written: WrittenFragments, origin: Origin
) -> AppendResult:
    """Replace all rows by those that were written into the table's folder."""
    place, options = catalog.lake.place(table.location), catalog.lake.options
    bridge = datasets.make_bridge(catalog, table, origin)
    id = list(table.identifier)

    def run() -> AppendResult:
        with translated(bridge):
            base = catalog.datasets.open_to_commit(place, branch, bridge, id)
            dataset = row_changes.commit_overwrite(base, written, bridge, id, options)
            before = base
            if dataset.version != base.version + 1:
                # Others have committed meanwhile, and their rows are replaced as well.
                before = dataset.checkout_version((branch or None, dataset.version - 1))
            count = before.count_rows()
            return AppendResult(written.rows, dataset.version, bridge.transaction_id, count)

    return await catalog.workers.run(run)


async def merge(
    catalog: Catalog,
    table: Table,
    branch: str,
    source: "ReadableFile | bytes",
    how: Merge,
    origin: Origin = NOBODY,
) -> MergeResult:
    """Merge rows by key. A long stream is stored first, because a merge may be retried.

    A table that is only declared is created first, without rows, so that of several merges each one
    sees the rows of those before it.
    """
    place = catalog.lake.place(table.location)
    opened: list[RowStream] = []
    if branch == MAIN and not await datasets.has_version(catalog, table, branch):
        opened = [await catalog.workers.run(RowStream, source, catalog.max_batch_bytes)]
        row_changes.check_keys(opened[0].schema, how.on)
        await insert(catalog, table, branch, uploads.write_empty(opened[0].schema), origin)

    def work(dataset: "lance.LanceDataset") -> MergeResult:
        stream = opened.pop() if opened else RowStream(source, catalog.max_batch_bytes)
        uploads.check_rows(dataset.schema, stream)
        if stream.is_whole:
            return row_changes.merge(dataset, stream, how)
        with spooled(place, catalog.datasets, stream) as spool:
            return row_changes.merge(dataset, spool, how)

    # A stream can be read only once.
    attempts = datasets.ATTEMPTS if isinstance(source, bytes) else 1
    # Lance lets concurrent merges insert the same key twice, so merges take turns here.
    lock = catalog.merge_locks.setdefault((table.id, branch), asyncio.Lock())
    async with lock:
        return await datasets.change(catalog, table, branch, work, origin, attempts)


async def _create_new(
    catalog: Catalog, new: NewTable, source: "ReadableFile | bytes", origin: Origin
) -> CreatedTable:
    """Write the rows into the table's new folder, then declare and commit in one transaction."""
    table = new.table
    place = catalog.lake.place(table.location)
    # Checked before gigabytes are uploaded for a table that cannot be created.
    await tables.check_new(catalog.database, new)
    if new.is_placed and await catalog.lake.run(first_version.is_occupied, place):
        raise TableAlreadyExists(
            f"location {table.location!r} holds files that no table here has",
            detail="register them as a table, or choose a location of its own",
        )
    bridge = datasets.make_bridge(catalog, table, origin, before=[Declare(new)])

    def write() -> WrittenFragments:
        stream = RowStream(source, catalog.max_batch_bytes)
        if new.is_placed and not stream.is_whole:
            # Others may write to a location that a client chose, so remove a partial upload as a
            # whole.
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
    work: "Callable[[lance.LanceDataset | None], WrittenFragments]",
) -> "Callable[[lance.LanceDataset | None], WrittenFragments]":
    def run(dataset: "lance.LanceDataset | None") -> WrittenFragments:
        with translated():
            return work(dataset)

    return run
