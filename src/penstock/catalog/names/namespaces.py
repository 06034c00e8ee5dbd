"""Namespaces: a tree of any depth, stored by full path."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Target
from penstock.catalog.catalog import Catalog
from penstock.catalog.functions import function_uses
from penstock.catalog.iceberg_views.metadata_files import keeps_files, remove_file
from penstock.catalog.jobs import jobs
from penstock.catalog.names import dependents, removals, transactions
from penstock.catalog.names.dependents import KeptVersions
from penstock.database.interface import Row, Transaction
from penstock.errors import (
    InvalidRequest,
    NamespaceAlreadyExists,
    NamespaceNotEmpty,
    NamespaceNotFound,
)
from penstock.model.allowances import NOTHING_BREAKS, Allowance
from penstock.model.identifiers import ROOT, Identifier, show, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.rights import NAMESPACE
from penstock.model.system_tables import SYSTEM


@dataclass(frozen=True, slots=True)
class DroppedFiles:
    """What a drop leaves on storage: folders of tables and views, and metadata files of views."""

    locations: list[str]
    files: list[str]
    kept: list[KeptVersions]


NOTHING = DroppedFiles([], [], [])


@dataclass(frozen=True, slots=True)
class CreatedNamespace:
    properties: dict[str, str]
    transaction_id: str | None


async def create(
    catalog: Catalog, id: Identifier, properties: dict[str, str], mode: str, origin: Origin = NOBODY
) -> CreatedNamespace:
    """Create a namespace; mode is create, exist_ok or overwrite."""
    if id == ROOT and mode == "overwrite":
        raise InvalidRequest("the root namespace cannot be overwritten", detail="drop its contents")
    if id == SYSTEM and mode == "overwrite":
        raise _refuse_system("overwritten")
    created, dropped = await catalog.database.write(_create, id, properties, mode, origin)
    await _carry_out(catalog, dropped)
    return created


async def drop(
    catalog: Catalog,
    id: Identifier,
    mode: str,
    behavior: str,
    origin: Origin = NOBODY,
    allowed: Allowance = NOTHING_BREAKS,
    named_by: Sequence[str] = (),
) -> dict[str, str]:
    """Drop a namespace; mode is fail or skip, behavior restrict or cascade.

    Views elsewhere that read its tables make this fail, are dropped with it, or break, as allowed;
    `named_by` are the Iceberg views among them.
    """
    if id == ROOT:
        raise InvalidRequest(
            "the root namespace cannot be dropped", detail="drop the namespaces in it"
        )
    if id == SYSTEM:
        raise _refuse_system("dropped")
    properties, dropped = await catalog.database.write(
        _drop, id, mode, behavior, origin, allowed, named_by
    )
    await _carry_out(catalog, dropped)
    return properties


async def update_properties(
    catalog: Catalog,
    id: Identifier,
    removals: list[str],
    updates: dict[str, str],
    origin: Origin = NOBODY,
) -> set[str]:
    """Remove and set properties; returns those to remove that did not exist."""
    return await catalog.database.write(_update_properties, id, removals, updates, origin)


async def get(tx: Transaction, id: Identifier) -> dict[str, str]:
    """The namespace's properties."""
    row = await tx.fetch_one("SELECT properties FROM namespaces WHERE path = $1", to_path(id))
    if row is None:
        raise missing(id)
    return decode_properties(row[0])


async def provide_in(tx: Transaction, id: Identifier) -> None:
    """Have the namespace of a new table: the system's own is made when it is first needed."""
    if id == SYSTEM:
        # Of nobody, so that whoever comes first gets no more rights in it than others.
        await _create(tx, id, {}, "exist_ok", NOBODY)
    else:
        await get(tx, id)


async def list_children(
    tx: Transaction, id: Identifier, page: PageRequest, only: Sequence[str] | None = None
) -> Page[str]:
    """The names of the namespaces directly below this one that these grantees may see."""
    seen = "" if only is None else f"AND {grants.visible_namespaces(only, 4)}"
    rows = await tx.fetch(
        f"SELECT name FROM namespaces n WHERE parent = $1 AND name > $2 {seen} "
        "ORDER BY name LIMIT $3",
        *(to_path(id), page.after or "", page.limit + 1),
        *(only or ()),
    )
    if not rows:
        await get(tx, id)
    names = [row[0] for row in rows]
    return cut_page(page, names, names)


def missing(id: Identifier) -> NamespaceNotFound:
    return NamespaceNotFound(
        f"{_called(id)} does not exist", detail="create it first, or check its id", subject=id
    )


def _refuse_system(what: str) -> InvalidRequest:
    return InvalidRequest(
        f"namespace {show(SYSTEM)} cannot be {what}: the server keeps its own tables there",
        detail="drop the tables in it that you do not need",
        subject=SYSTEM,
    )


def _called(id: Identifier) -> str:
    return f"namespace {show(id)}" if id else show(id)


async def _create(
    tx: Transaction, id: Identifier, properties: dict[str, str], mode: str, origin: Origin
) -> tuple[CreatedNamespace, DroppedFiles]:
    dropped = NOTHING
    row = await tx.fetch_one("SELECT properties FROM namespaces WHERE path = $1", to_path(id))
    if row is not None and mode == "exist_ok":
        return CreatedNamespace(decode_properties(row[0]), None), NOTHING
    if row is not None and mode == "create":
        raise NamespaceAlreadyExists(
            f"{_called(id)} already exists", detail="use mode ExistOk to keep it", subject=id
        )
    if row is not None:
        with contextlib.suppress(NamespaceNotFound):
            dropped = await _drop_tree(tx, id, origin)
    await get(tx, id[:-1])
    await tx.fetch(
        "INSERT INTO namespaces (path, parent, name, properties, created_at) "
        "VALUES ($1, $2, $3, $4, now_millis())",
        to_path(id),
        to_path(id[:-1]),
        id[-1],
        encode_properties(properties),
    )
    await grants.give_owner_in(tx, origin, Target(NAMESPACE, id), to_path(id))
    transaction = await transactions.record(tx, "CreateNamespace", show(id), origin)
    return CreatedNamespace(properties, transaction), dropped


async def _drop(
    tx: Transaction,
    id: Identifier,
    mode: str,
    behavior: str,
    origin: Origin,
    allowed: Allowance,
    named_by: Sequence[str],
) -> tuple[dict[str, str], DroppedFiles]:
    try:
        properties = await get(tx, id)
        if behavior == "restrict":
            await _check_empty(tx, id)
        dropped = await _drop_tree(tx, id, origin, allowed, named_by)
    except NamespaceNotFound:
        if mode == "skip":
            return {}, NOTHING
        raise
    await transactions.record(tx, "DropNamespace", show(id), origin)
    return properties, dropped


async def _update_properties(
    tx: Transaction,
    id: Identifier,
    removed: list[str],
    updates: dict[str, str],
    origin: Origin,
) -> set[str]:
    # Locked first, so that on PostgreSQL two updates follow each other.
    row = await tx.fetch_one(
        "UPDATE namespaces SET path = path WHERE path = $1 RETURNING properties", to_path(id)
    )
    if row is None:
        raise missing(id)
    properties = decode_properties(row[0])
    gone = set(removed)
    kept = {key: value for key, value in properties.items() if key not in gone}
    await tx.fetch(
        "UPDATE namespaces SET properties = $2 WHERE path = $1",
        to_path(id),
        encode_properties(kept | updates),
    )
    missing_keys = gone - properties.keys()
    notes = {"missing": sorted(missing_keys)}
    await transactions.record(tx, "UpdateNamespaceProperties", show(id), origin, notes=notes)
    return missing_keys


async def _check_empty(tx: Transaction, id: Identifier) -> None:
    for what, column, relation in (
        ("'namespace'", "parent", "namespaces"),
        ("kind", "namespace", "objects"),
    ):
        row = await tx.fetch_one(
            f"SELECT name, {what} FROM {relation} WHERE {column} = $1 ORDER BY name LIMIT 1",
            to_path(id),
        )
        if row is not None:
            raise NamespaceNotEmpty(
                f"namespace {show(id)} holds the {row[1]} {row[0]!r}",
                detail="drop what is in it first, or use behavior Cascade",
                subject=id,
            )


async def _carry_out(catalog: Catalog, dropped: DroppedFiles) -> None:
    for location in dropped.files:
        await catalog.lake.run(remove_file, catalog.lake, location)
    await removals.carry_out(catalog, dropped.locations)
    await dependents.let_go(catalog, dropped.kept)


async def _drop_tree(
    tx: Transaction,
    id: Identifier,
    origin: Origin,
    allowed: Allowance | None = None,
    named_by: Sequence[str] = (),
) -> DroppedFiles:
    """Delete the namespace and everything below it; returns what to remove from storage."""
    path = to_path(id)
    # Paths below this one start with it and the separator, which sorts just before a space.
    below = (path, f"{path}\x1f", f"{path}\x20")
    within = "(namespace = $1 OR (namespace >= $2 AND namespace < $3))"
    objects = f"(SELECT id FROM objects WHERE {within})"
    rows = await tx.fetch(f"SELECT id FROM materialized_views WHERE id IN {objects}", *below)
    kept = await dependents.list_kept(tx, [row[0] for row in rows])
    await _check_functions(tx, id, below, objects, origin)
    readers, more, others = await _drop_readers(tx, id, below, within, allowed, origin, named_by)
    for relation, key in (
        *((relation, "table_id") for relation in dependents.TABLE_RECORDS),
        *(("view_sources", "view_id"), ("refresh_schedules", "view_id")),
        *(("view_definitions", "view_id"), ("view_alterations", "view_id")),
        ("materialized_views", "id"),
    ):
        await tx.fetch(f"DELETE FROM {relation} WHERE {key} IN {objects}", *below)
    rows_of_tables = await tx.fetch(f"SELECT id FROM tables WHERE id IN {objects}", *below)
    await jobs.cancel_for_tables_in(
        tx, {row[0] for row in rows_of_tables}, f"namespace {show(id)} was dropped"
    )
    rows = await tx.fetch(
        f"DELETE FROM tables WHERE id IN {objects} RETURNING absolute(location)", *below
    )
    views = await tx.fetch(
        f"DELETE FROM views WHERE id IN {objects} "
        "RETURNING absolute(folder), metadata_location, metadata",
        *below,
    )
    # Files of Iceberg tables stay: only their own drop may ask for a purge.
    await tx.fetch(f"DELETE FROM iceberg_tables WHERE id IN {objects}", *below)
    await tx.fetch(f"DELETE FROM function_versions WHERE function_id IN {objects}", *below)
    await tx.fetch(f"DELETE FROM functions WHERE id IN {objects}", *below)
    await grants.forget_tree_in(tx, path)
    await tx.fetch(f"DELETE FROM objects WHERE {within}", *below)
    gone = await tx.fetch(
        "DELETE FROM namespaces WHERE path = $1 OR (path >= $2 AND path < $3) RETURNING path",
        *below,
    )
    # On PostgreSQL, of two concurrent drops the second finds nothing to delete.
    if not gone:
        raise missing(id)
    gone_views = [row for row in (*views, *others) if not keeps_files(row[2])]
    locations = readers + [row[0] for row in (*rows, *gone_views) if row[0]]
    await removals.enqueue(tx, locations)
    return DroppedFiles(locations, [row[1] for row in gone_views], kept + more)


async def _check_functions(
    tx: Transaction, id: Identifier, below: tuple[str, str, str], objects: str, origin: Origin
) -> None:
    """Refuse to drop functions that something elsewhere uses."""
    # Locked, so that what is recorded as a user meanwhile is seen.
    held = await tx.fetch(
        f"UPDATE functions SET id = id WHERE id IN {objects} RETURNING id", *below
    )
    if held:
        going = await tx.fetch(f"SELECT id FROM objects WHERE id IN {objects}", *below)
        what = f"namespace {show(id)}"
        ids = [row[0] for row in held]
        await function_uses.check_unused_outside(tx, what, ids, {row[0] for row in going}, origin)


async def _drop_readers(
    tx: Transaction,
    id: Identifier,
    below: tuple[str, str, str],
    within: str,
    allowed: Allowance | None,
    origin: Origin,
    named_by: Sequence[str],
) -> tuple[list[str], list[KeptVersions], list[Row]]:
    """Drop views elsewhere that read a namespace's tables.

    Returns the folders of materialized views, and the deleted rows of Iceberg views.
    """
    # Locked first, so that on PostgreSQL a view that is being created is seen.
    taken = await tx.fetch(f"UPDATE objects SET id = id WHERE {within} RETURNING id", *below)
    objects = f"(SELECT id FROM objects WHERE {within})"
    if not named_by and not await tx.fetch(
        f"SELECT 1 FROM view_sources WHERE source_id IN {objects} LIMIT 1", *below
    ):
        return [], [], []
    what = f"something in namespace {show(id)}"
    ids = [row[0] for row in taken]
    elsewhere = [each for each in named_by if each not in set(ids)]
    readers = await dependents.check_unread(tx, what, ids, allowed, origin, elsewhere)
    kept = await dependents.list_kept(tx, readers)
    reason = f"namespace {show(id)}, which it reads, was dropped"
    gone = [await dependents.delete_records(tx, reader, reason) for reader in readers]
    taken_along = elsewhere if allowed is not None and allowed.cascade else []
    rows = [await dependents.delete_iceberg_view(tx, each) for each in taken_along]
    folders = [location for location in gone if location is not None]
    return folders, kept, [row for row in rows if row is not None]
