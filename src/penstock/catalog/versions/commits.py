"""Commits: any number of table operations, all or nothing, in one durable transaction.

A single new version is a commit of one operation; every change of versions comes through here. In
order: the staged manifests are checked, one SQL transaction decides, the manifests get their final
names, durably. Success is reported only after the last step, and whoever finds an unfinished commit
finishes it.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.queue import CHANGES
from penstock.catalog.materialized_views import foreign_commits, pending_alterations
from penstock.catalog.materialized_views.pending_alterations import AlteringCommit
from penstock.catalog.names import dependents, idempotency, table_changes, tables, transactions
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions import reconcile, settling, versions
from penstock.catalog.versions.settling import SettleOutcome, version_key
from penstock.catalog.versions.staging import (
    SMALL_MANIFEST_BYTES,
    NewVersion,
    StagedManifest,
    check_staged,
    discard,
)
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest, TableNotFound, VersionNotFound
from penstock.lance.storage import files
from penstock.model.branches import show_branch
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table, TableVersion, VersionRange

# Each round handles one surprise: a commit by path, a repeated request, a cleaned-up table.
ROUNDS = 5


Undo = Callable[[Transaction], Awaitable[None]]
# May refuse a version, or change other records with it; returns how to undo that.
Guard = Callable[[Transaction], Awaitable[Undo | None]]


@dataclass(frozen=True, slots=True)
class Declare:
    new: NewTable
    # Other records that make the table what it is, written in the same transaction.
    record: Callable[[Transaction], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class CreateVersion:
    table: Identifier
    new: NewVersion
    # Made by pylance in this server, which only makes allowed changes.
    is_ours: bool = False
    # Runs in the transaction that records the version.
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class DeleteVersions:
    table: Identifier
    branch: str
    ranges: Sequence[VersionRange]


@dataclass(frozen=True, slots=True)
class Deregister:
    table: Identifier


@dataclass(frozen=True, slots=True)
class CommittedVersion:
    """A committed version: by this commit, or found to be there by a repeated request."""

    table: Table
    version: TableVersion
    is_new: bool


Operation = Declare | CreateVersion | DeleteVersions | Deregister
Result = Table | CommittedVersion | int


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """What a commit did: one result per operation, in order."""

    transaction_id: str
    results: list[Result]


@dataclass(frozen=True, slots=True)
class _PendingVersion:
    """A version to commit, and what was found out about it.

    `same`: the catalog already has this content. `looked`: storage has no earlier one.
    """

    table: Table
    branch: str
    staged: StagedManifest
    same: bool = False
    looked: bool = False
    # Of a view that becomes one of another definition with this version.
    altering: AlteringCommit | None = None


class RecordRefused(Exception):
    """Others may have changed what a record rests on: `look` raises if so, else try again."""

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.look = look


class _VersionRefused(Exception):
    """The records don't allow a version: its number is taken, or does not follow the newest."""

    def __init__(self, index: int, existing: TableVersion | None, head: int) -> None:
        super().__init__(index)
        self.index, self.existing, self.head = index, existing, head


async def commit(
    catalog: Catalog, operations: Sequence[Operation], origin: Origin = NOBODY
) -> CommitOutcome:
    """Carry out all operations or none."""
    try:
        return await _commit(catalog, operations, origin)
    except InvalidRequest:
        # Perhaps the branch's name is wrong; checked only now, because a branch begins with its
        # first version.
        declared = {op.new.table.identifier for op in operations if isinstance(op, Declare)}
        for op in operations:
            if isinstance(op, CreateVersion) and op.new.branch and op.table not in declared:
                table = await tables.get(catalog.database, op.table)
                await reconcile.check_branch_exists(catalog, table, op.new.branch)
        raise


async def _commit(
    catalog: Catalog, operations: Sequence[Operation], origin: Origin
) -> CommitOutcome:
    entries = await _stage(catalog, operations, origin)
    # Read before the transaction, which may run more than once.
    batch_id = str(uuid.uuid4())
    surprises = 0
    while surprises < ROUNDS:
        try:
            done, undo = await catalog.database.write(_apply, operations, entries, batch_id, origin)
        except RecordRefused as refused:
            await refused.look()
            continue
        except _VersionRefused as refused:
            entries[refused.index] = await _resolve(catalog, entries[refused.index], refused)
            surprises += 1
            continue
        crash_point("version recorded")
        await _settle(catalog, entries, done.results, undo)
        crash_point("version settled")
        catalog.queue.ring(CHANGES)
        return done
    raise ConcurrentCommit("the table changes too fast to commit to it", detail="retry")


async def _stage(
    catalog: Catalog, operations: Sequence[Operation], origin: Origin
) -> dict[int, _PendingVersion]:
    """Check each staged version; its table may be declared by the same commit."""
    declared = {
        op.new.table.identifier: op.new.table for op in operations if isinstance(op, Declare)
    }
    freed = {op.table for op in operations if isinstance(op, Deregister)}
    for identifier in declared.keys() - freed:
        await tables.check_free(catalog.database, identifier)
    entries = {}
    for index, op in enumerate(operations):
        if isinstance(op, DeleteVersions) and op.branch and op.table not in declared:
            table = await tables.get(catalog.database, op.table)
            await reconcile.check_branch_exists(catalog, table, op.branch)
        if isinstance(op, CreateVersion):
            table = declared.get(op.table) or await tables.get(catalog.database, op.table)
            place = catalog.lake.place(table.location)
            if 0 < (op.new.manifest_size or 0) <= SMALL_MANIFEST_BYTES:
                staged = await catalog.lake.run_briefly(place, check_staged, place, op.new)
            else:
                staged = await catalog.lake.run(check_staged, place, op.new)
            altering = None
            if table.is_view and not op.is_ours:
                altering = await foreign_commits.check(
                    catalog, table, op.new.branch, staged, origin
                )
            entries[index] = _PendingVersion(table, op.new.branch, staged, altering=altering)
            catalog.visit_later(table, op.new.branch)
    return entries


async def _apply(
    tx: Transaction,
    operations: Sequence[Operation],
    entries: dict[int, _PendingVersion],
    batch_id: str,
    origin: Origin,
) -> tuple[CommitOutcome, list[Undo]]:
    results: list[Result] = []
    undo: list[Undo] = [partial(idempotency.forget, origin=origin)]
    transaction, parts, created_version = "", list[str](), None
    # Keys are recorded once for the whole commit.
    unkeyed = replace(origin, keys=())
    for index, op in enumerate(operations):
        match op:
            case Declare(new, record):
                transaction = await tables.declare_in(tx, new, unkeyed)
                if record is not None:
                    await record(tx)
                results.append(new.table)
                undo.append(partial(tables.delete_in, table=new.table))
                undo.append(partial(transactions.forget, id=transaction))
            case CreateVersion(id, guard=guard):
                if guard is not None and (step := await guard(tx)) is not None:
                    undo.append(step)
                created = await _record(tx, id, index, entries[index])
                transaction = await transactions.record(
                    tx, "CreateTableVersion", show(id), unkeyed, id=created.version.transaction_id
                )
                created_version = created.version.version
                results.append(created)
                if created.is_new:
                    undo.append(partial(transactions.forget, id=transaction))
                if created.is_new and (altering := entries[index].altering) is not None:
                    undo.append(
                        await pending_alterations.apply_in(
                            tx, created.table, altering, created.version.version
                        )
                    )
            case DeleteVersions(id, branch, ranges):
                table = await tables.get(tx, id)
                if entries:
                    undo.append(await versions.keep(tx, table.id))
                results.append(await versions.delete(tx, table.id, branch, ranges))
                transaction = await transactions.record(
                    tx, "DeleteTableVersions", str(table), unkeyed
                )
                undo.append(partial(transactions.forget, id=transaction))
            case Deregister(id):
                table = await tables.get(tx, id)
                if entries:
                    undo.append(await versions.keep(tx, table.id))
                    if table.is_view:
                        undo.append(await dependents.keep(tx, table.id))
                undo.append(await grants.keep(tx, table.id))
                undo.append(partial(tables.insert_in, new=NewTable(table, is_placed=True)))
                _, transaction = await table_changes.deregister_in(tx, id, unkeyed)
                results.append(table)
                undo.append(partial(transactions.forget, id=transaction))
        parts.append(transaction)
    if len(operations) > 1:
        transaction = await transactions.record(
            tx, "BatchCommitTables", f"{len(operations)} operations", unkeyed, id=batch_id
        )
        undo.append(partial(transactions.forget, id=transaction))
    notes = {"version": created_version, "parts": parts}
    await idempotency.use(tx, origin, transaction, notes)
    return CommitOutcome(transaction, results), undo


async def _record(
    tx: Transaction, id: Identifier, index: int, entry: _PendingVersion
) -> CommittedVersion:
    """Put if absent: the version must follow the newest, or be the one that is there."""
    if (await tables.get(tx, id)).id != entry.table.id:
        raise TableNotFound(f"table {show(id)} was replaced meanwhile", detail="open it again")
    wanted = entry.staged.version
    head = await versions.find_head(tx, entry.table.id, entry.branch)
    if head is None or wanted.version == head.version + 1:
        if entry.staged.content is None:
            raise InvalidRequest(
                f"manifest_path {wanted.staged_path!r} does not exist",
                detail="stage the manifest before creating the version",
            )
        has_others = entry.staged.is_taken or (head is None and wanted.version > 1)
        if has_others and not entry.looked:
            # There may be commits by path, to be adopted first.
            raise _VersionRefused(index, None, head.version if head else 0)
        await versions.insert(tx, entry.table.id, entry.branch, wanted)
        return CommittedVersion(entry.table, wanted, is_new=True)
    existing = await versions.find(tx, entry.table.id, entry.branch, wanted.version)
    if existing is not None and (entry.same or _is_repeat(existing, entry.staged)):
        return CommittedVersion(entry.table, existing, is_new=False)
    raise _VersionRefused(index, existing, head.version)


def _is_repeat(existing: TableVersion, staged: StagedManifest) -> bool:
    # Only a missing file may count as the one that was moved; others are compared.
    wanted = staged.version
    return (
        staged.content is None
        and existing.staged_path == wanted.staged_path
        and wanted.manifest_size in (0, existing.manifest_size)
        and wanted.e_tag in (None, existing.e_tag)
    )


async def _resolve(
    catalog: Catalog, entry: _PendingVersion, refused: _VersionRefused
) -> _PendingVersion:
    """Find out why a version was refused; returns what to try next, or raises the answer."""
    table, branch, wanted = entry.table, entry.branch, entry.staged.version
    place = catalog.lake.place(table.location)
    if refused.existing is not None:
        try:
            found = await reconcile.get_version(catalog, table, branch, wanted.version)
            final = await catalog.lake.run(files.read, place, found.manifest_path)
        except (VersionNotFound, FileNotFoundError):
            return entry  # cleaned up, or never finished: the records are right by now
        if final == entry.staged.content:
            await catalog.lake.run(discard, place, wanted)
            return replace(entry, same=True)
        raise await _lost(catalog, entry)
    await reconcile.reconcile(catalog, table, branch)
    head = await versions.find_head(catalog.database, table.id, branch)
    if head is None or head.version != refused.head or wanted.version == head.version + 1:
        return replace(entry, looked=True)
    if wanted.version > head.version + 1:
        raise InvalidRequest(
            f"version {wanted.version} leaves a gap: the newest version of table {table} on branch "
            f"{show_branch(branch)} is {head.version}",
            detail=f"the next version is {head.version + 1}",
        )
    # Its record was deleted; the writer must see which version it lost to.
    await reconcile.adopt_one(catalog, table, branch, wanted.version)
    raise await _lost(catalog, entry)


async def _settle(
    catalog: Catalog, entries: dict[int, _PendingVersion], results: list[Result], undo: list[Undo]
) -> None:
    """Give every manifest its final name before success is reported."""
    keys = []
    for index, entry in entries.items():
        result = results[index]
        assert isinstance(result, CommittedVersion)
        version = result.version
        if version.settled:
            continue
        place = catalog.lake.place(entry.table.location)
        content = entry.staged.content if result.is_new else None
        outcome = await catalog.settler.settle(place, version, content)
        if outcome is not SettleOutcome.SETTLED:
            await _undo(catalog, entries, results, undo)
            raise await _lost(catalog, entry)
        keys.append(version_key(entry.table.id, entry.branch, version))
    catalog.settler.add(keys)


async def _undo(
    catalog: Catalog, entries: dict[int, _PendingVersion], results: list[Result], undo: list[Undo]
) -> None:
    """Undo the whole commit, because a commit by path took a final name at the last moment."""
    fresh = [
        entry
        for index, entry in entries.items()
        if isinstance(result := results[index], CommittedVersion) and result.is_new
    ]
    withdrawals = [
        partial(versions.withdraw, table_id=e.table.id, branch=e.branch, version=e.staged.version)
        for e in fresh
    ]
    # In this order: the restored records include this commit's own.
    await catalog.database.write(_run_all, [*reversed(undo), *withdrawals])
    for entry in fresh:
        place = catalog.lake.place(entry.table.location)
        await catalog.lake.run(
            settling.unsettle, place, entry.staged.version, entry.staged.content or b""
        )
        await reconcile.reconcile(catalog, entry.table, entry.branch)


async def _run_all(tx: Transaction, steps: Sequence[Undo]) -> None:
    for step in steps:
        await step(tx)


async def _lost(catalog: Catalog, entry: _PendingVersion) -> ConcurrentCommit:
    """The answer to a writer that lost the race; its staged manifest is removed."""
    wanted = entry.staged.version
    if entry.staged.content is not None:
        await catalog.lake.run(discard, catalog.lake.place(entry.table.location), wanted)
    return ConcurrentCommit(
        f"version {wanted.version} of table {entry.table} on branch {show_branch(entry.branch)} "
        "was committed by another writer",
        detail="describe that version, rebase on it and commit the next one",
    )
