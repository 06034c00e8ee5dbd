"""Commits to Iceberg tables: apply the updates, write the files, swap the records, all or none.

The swap compares each record with the metadata that requirements were checked and updates applied
against. If another commit was first, both are done again on its result; what no longer holds there
fails. Within one server, commits to a table take turns.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_tables import creation, iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.creation import LoadedTable
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.catalog.iceberg_tables.metadata_files import PlannedFile
from penstock.catalog.iceberg_views.metadata_files import spell
from penstock.catalog.names import namespaces, transactions
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, PenstockError
from penstock.iceberg.doors import table_log, table_requests, table_requirements, table_updates
from penstock.iceberg.tables.changes import find_rows_snapshot
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin
from penstock.retries import spread

Json = dict[str, Any]

ATTEMPTS = 10
PAUSE_SECONDS = 0.01

# One lock for each table that is being committed to in this process, by its name; other processes
# meet at the swap.
_turns: WeakValueDictionary[Identifier, asyncio.Lock] = WeakValueDictionary()


@dataclass(frozen=True, slots=True)
class TableCommit:
    """What a request asks of one table; `digest` is that of all that it says about it."""

    id: Identifier
    request: "table_requests.CommitTable"
    digest: str
    # The snapshots that it adds, as it sent them.
    snapshots: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class _Change:
    """What becomes of one table: `base` is None of a new one, `planned` when nothing changes."""

    base: IcebergTable | None
    table: IcebergTable
    text: bytes
    planned: PlannedFile | None = None
    removable: tuple[str, ...] = ()


class _SwapLost(ConcurrentCommit):
    default = "another commit was first"


async def commit(
    catalog: Catalog, asked: Sequence[TableCommit], origin: Origin = NOBODY
) -> list[LoadedTable]:
    """Make all of these commits, or none; returns the tables as they became, in the same order."""
    async with _take_turns([each.id for each in asked]):
        for pause in spread(PAUSE_SECONDS, ATTEMPTS):
            with contextlib.suppress(_SwapLost):
                changes = [await _plan(catalog, each) for each in asked]
                await _carry_out(catalog, changes, origin)
                return [LoadedTable(each.table, each.text, each.table.location) for each in changes]
            await asyncio.sleep(pause)
    names = ", ".join(".".join(each.id) for each in asked)
    raise ConcurrentCommit(f"Cannot commit to {names}: others commit too fast", detail="retry")


@contextlib.asynccontextmanager
async def _take_turns(ids: Sequence[Identifier]) -> AsyncIterator[None]:
    # In one order, so that two requests never wait for each other.
    turns = [_turns.setdefault(id, asyncio.Lock()) for id in sorted(set(ids))]
    async with contextlib.AsyncExitStack() as stack:
        for turn in turns:
            await stack.enter_async_context(turn)
        yield


async def _plan(catalog: Catalog, asked: TableCommit) -> _Change:
    """Check and apply one commit to what is current."""
    now = await creation.read_clock(catalog.database)
    base = await iceberg_tables.find(catalog.database, asked.id)
    if base is None:
        return await _plan_new(catalog, asked, now)
    base, text = await metadata_files.load(catalog, base)
    found = await catalog.lake.run(_apply, catalog, base, text, asked, now)
    if found is None:
        return _Change(base, base, text)
    planned, removable, rows_snapshot = found
    table = replace(
        base,
        uuid=planned.document["table-uuid"],
        location=planned.location,
        folder=base.folder_after(planned.location),
        metadata_location=planned.path,
        metadata_folder=planned.target.location,
        digest=asked.digest,
        rows_snapshot=rows_snapshot,
    )
    change = _Change(base, table, planned.text, planned, tuple(removable))
    if _moves(change):
        await catalog.database.read(creation.check_places, table, early=True)
    return change


async def _plan_new(catalog: Catalog, asked: TableCommit, now: int) -> _Change:
    """The first commit to a table that was staged."""
    if not asked.request.creates:
        raise iceberg_tables.missing(asked.id)
    properties = await catalog.database.read(iceberg_tables.check_new, asked.id)
    table_uuid = uuid.uuid4()
    folder = creation.new_folder(catalog, asked.id, table_uuid, properties)
    planned = await catalog.lake.run(
        _plan_first, catalog, asked.request, str(table_uuid), spell(folder), now
    )
    # The same folder that was told when the table was staged, unless the client chose another.
    chosen = uuid.UUID(planned.document["table-uuid"])
    folder = creation.new_folder(catalog, asked.id, chosen, properties)
    table = IcebergTable(
        uuid.uuid4().hex,
        asked.id[:-1],
        asked.id[-1],
        planned.document["table-uuid"],
        planned.location,
        folder if folder == planned.location else "",
        planned.path,
        planned.target.location,
        asked.digest,
        find_rows_snapshot(planned.document, None, 0),
    )
    await catalog.database.read(creation.check_places, table, early=True)
    return _Change(None, table, planned.text, planned)


def _plan_first(
    catalog: Catalog,
    request: "table_requests.CommitTable",
    table_uuid: str,
    location: str,
    now: int,
) -> PlannedFile:
    table_requirements.check(None, request.requirements)
    document = table_updates.apply(None, request.updates, now, uuid=table_uuid, location=location)
    document, _ = table_log.with_log(document, None, None)
    return metadata_files.plan(catalog.lake, document, None)


def _apply(
    catalog: Catalog, base: IcebergTable, text: bytes, asked: TableCommit, now: int
) -> tuple[PlannedFile, list[str], int] | None:
    """The table's next file, older ones that may go then, and the last snapshot that changed rows.

    None when nothing changes.
    """
    document: Json = msgspec.json.decode(text)
    try:
        table_requirements.check(document, asked.request.requirements)
        changed = table_updates.apply(document, asked.request.updates, now)
    except PenstockError:
        # The answer to its first arrival may have been lost.
        if base.digest == asked.digest or _has_snapshots(document, asked.snapshots):
            return None
        raise
    if changed is document:
        return None
    rows_snapshot = find_rows_snapshot(changed, document, base.rows_snapshot)
    changed, removable = table_log.with_log(changed, document, base.metadata_location)
    planned = metadata_files.plan(catalog.lake, changed, base.metadata_location)
    return planned, removable, rows_snapshot


def _has_snapshots(document: Json, wanted: Sequence[Json]) -> bool:
    """Whether a table has all of some snapshots: their ids are random, their files unique."""
    known = {each["snapshot-id"]: each for each in document.get("snapshots") or ()}
    return bool(wanted) and all(_is_same(known.get(each["snapshot-id"]), each) for each in wanted)


def _is_same(known: Json | None, wanted: Json) -> bool:
    keys = ("manifest-list", "manifests", "timestamp-ms", "parent-snapshot-id")
    return known is not None and all(known.get(key) == wanted.get(key) for key in keys)


def _moves(change: _Change) -> bool:
    """Whether a table's files come to be where they were not looked for before."""
    base, table = change.base, change.table
    if base is None or table.location != base.location:
        return True
    return table.metadata_folder != base.metadata_folder and not table.holds(table.metadata_folder)


async def _carry_out(catalog: Catalog, changes: Sequence[_Change], origin: Origin) -> None:
    """Write all files, and swap all records in one transaction."""
    changed = [each for each in changes if each.planned is not None]
    if not changed:
        return
    written: list[str] = []
    try:
        for each in changed:
            assert each.planned is not None
            await catalog.lake.run(metadata_files.write, each.planned)
            written.append(each.planned.path)
    except PenstockError:
        await metadata_files.abandon(catalog, written)
        raise
    crash_point("table file written")
    swaps = [
        (
            each.table.id,
            None if each.base is None else each.base.metadata_location,
            each.table.metadata_location,
        )
        for each in changed
    ]
    # Those that do not change were asserted about as well.
    await metadata_files.publish(catalog, swaps, _swap_all, changes, origin)
    crash_point("table recorded")
    for each in changed:
        catalog.documents.keep(each.table.state, each.text)
        if each.removable:
            await catalog.lake.run(metadata_files.remove, catalog.lake, each.table, each.removable)


async def _swap_all(tx: Transaction, changes: Sequence[_Change], origin: Origin) -> None:
    # In one order, so that on PostgreSQL two of these never wait for each other.
    for each in sorted(changes, key=lambda each: each.table.identifier):
        if each.base is None:
            await _insert(tx, each.table, origin)
            continue
        if each.planned is not None and _moves(each):
            await creation.check_places(tx, each.table)
        if not await iceberg_tables.swap_in(tx, each.base, each.table):
            raise _SwapLost
    names = ", ".join(show(each.table.identifier) for each in changes)
    kind = "CommitIcebergTable" if len(changes) == 1 else "CommitIcebergTables"
    await transactions.record(tx, kind, names, origin)


async def _insert(tx: Transaction, table: IcebergTable, origin: Origin) -> None:
    await namespaces.get(tx, table.namespace)
    if await iceberg_tables.find(tx, table.identifier) is not None:
        raise _SwapLost  # somebody made it meanwhile, and the assertion fails the next time
    await iceberg_tables.check_new(tx, table.identifier)
    await creation.check_places(tx, table)
    await iceberg_tables.insert_in(tx, table, origin)
