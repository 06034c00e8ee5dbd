"""Tables: declare, register, find, list, rename, drop, deregister."""

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog import (
    grants,
    jobs,
    locations,
    namespaces,
    reconcile,
    removals,
    transactions,
    versions,
)
from penstock.catalog.catalog import Catalog
from penstock.catalog.grants import Target
from penstock.database.interface import Row, Transaction
from penstock.datasets import files
from penstock.datasets.manifest import parse_name, versions_folder
from penstock.errors import InvalidRequest, TableAlreadyExists, TableNotFound
from penstock.model.identifiers import Identifier, from_path, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.rights import TABLE
from penstock.model.tables import MAIN, Table

MANAGED_PROPERTY = "penstock.managed_versioning"
COLUMNS = "o.id, o.namespace, o.name, t.location, t.managed, o.properties"
HAS_BOUND = "EXISTS (SELECT 1 FROM columns c WHERE c.table_id = t.id)"


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is about to be declared; `is_placed` when the client chose its location."""

    table: Table
    is_placed: bool


async def declare(catalog: Catalog, new: NewTable, origin: Origin = NOBODY) -> str:
    """Reserve a table's name and location; returns the transaction."""
    return await catalog.database.write(declare_in, new, origin)


async def register(catalog: Catalog, new: NewTable, mode: str, origin: Origin = NOBODY) -> str:
    """Take a table that exists on storage into the catalog; mode is create or overwrite."""
    place = catalog.lake.place(new.table.location)
    entries = await catalog.lake.run(files.list_folder, place, versions_folder(MAIN))
    if not any(parse_name(entry.name) for entry in entries):
        raise InvalidRequest(
            f"location {new.table.location!r} holds no Lance table",
            detail="check the location, or declare the table and write it",
        )
    transaction = await catalog.database.write(_register, new, mode, origin)
    await reconcile.reconcile(catalog, new.table, MAIN)
    return transaction


async def drop(catalog: Catalog, id: Identifier, origin: Origin = NOBODY) -> tuple[Table, str]:
    """Take a table out of the catalog and delete its files."""
    table, transaction = await catalog.database.write(_drop, id, origin)
    await removals.carry_out(catalog, [table.location])
    return table, transaction


async def deregister(
    catalog: Catalog, id: Identifier, origin: Origin = NOBODY
) -> tuple[Table, str]:
    """Take a table out of the catalog; its files stay."""
    return await catalog.database.write(deregister_in, id, origin)


async def rename(catalog: Catalog, id: Identifier, new: Identifier, origin: Origin = NOBODY) -> str:
    """Give a table another name, in any namespace; its files stay where they are."""
    return await catalog.database.write(_rename, id, new, origin)


async def get(tx: Transaction, id: Identifier) -> Table:
    """The table, or the error that tells whether its namespace or it is missing."""
    namespace, name = split_table(id)
    row = await tx.fetch_one(
        f"SELECT {COLUMNS}, {HAS_BOUND} FROM objects o JOIN tables t ON t.id = o.id "
        "WHERE o.namespace = $1 AND o.name = $2",
        to_path(namespace),
        name,
    )
    if row is None:
        await namespaces.get(tx, namespace)
        raise await _explain_missing(tx, id)
    return to_table(row)


async def _explain_missing(tx: Transaction, id: Identifier) -> TableNotFound:
    """The error for a name that no table has; something else may have it."""
    try:
        await check_free(tx, id)
    except TableAlreadyExists:
        return TableNotFound(f"{show(id)} is a view, not a table", detail="load it as a view")
    return missing(id)


def missing(id: Identifier) -> TableNotFound:
    return TableNotFound(
        f"table {show(id)} does not exist", detail="declare or register it, or check its id"
    )


async def list_names(
    catalog: Catalog,
    namespace: Identifier,
    page: PageRequest,
    include_declared: bool,
    only: Sequence[str] | None = None,
) -> Page[str]:
    """The names of the tables directly in a namespace; only those that these grantees may see."""
    if include_declared:
        rows = await catalog.database.fetch(
            "SELECT name FROM objects o WHERE namespace = $1 AND kind = 'table' AND name > $2 "
            f"{_seen(only, 4)} ORDER BY name LIMIT $3",
            *(to_path(namespace), page.after or "", page.limit + 1),
            *(only or ()),
        )
        names = [row[0] for row in rows]
        found = cut_page(page, names, names)
    else:
        tables = await _list(catalog, page, include_declared, namespace, only)
        found = Page([table.name for table in tables.items], tables.token)
    if not found.items:
        await namespaces.get(catalog.database, namespace)
    return found


async def list_all(
    catalog: Catalog, page: PageRequest, include_declared: bool, only: Sequence[str] | None = None
) -> Page[Identifier]:
    """The identifiers of all tables of all namespaces; only those that these grantees may see."""
    tables = await _list(catalog, page, include_declared, None, only)
    return Page([table.identifier for table in tables.items], tables.token)


async def has_data(catalog: Catalog, table: Table) -> bool:
    """Whether the table was ever written, through the catalog or by path."""
    if await versions.find_head(catalog.database, table.id, MAIN) is not None:
        return True
    return await reconcile.reconcile(catalog, table, MAIN)


def plan_table(
    catalog: Catalog,
    id: Identifier,
    location: str | None,
    properties: dict[str, str],
    managed: bool,
) -> NewTable:
    """Decide id and location of a new table; a property overrides who manages its versions."""
    namespace, name = split_table(id)
    table_id = uuid.uuid4().hex
    placed = (
        catalog.lake.new_location(".".join(id), table_id[:16])
        if location is None
        else catalog.lake.accept(location)
    )
    managed = _read_flag(properties.get(MANAGED_PROPERTY), managed)
    table = Table(table_id, namespace, name, placed, managed, properties)
    return NewTable(table, location is not None)


async def declare_in(tx: Transaction, new: NewTable, origin: Origin) -> str:
    await insert_in(tx, new, origin)
    return await transactions.record(tx, "DeclareTable", str(new.table), origin)


async def deregister_in(tx: Transaction, id: Identifier, origin: Origin) -> tuple[Table, str]:
    table = await get(tx, id)
    await delete_in(tx, table)
    return table, await transactions.record(tx, "DeregisterTable", str(table), origin)


async def _register(tx: Transaction, new: NewTable, mode: str, origin: Origin) -> str:
    if mode == "overwrite":
        with contextlib.suppress(TableNotFound):
            await delete_in(tx, await get(tx, new.table.identifier))
    await insert_in(tx, new, origin)
    return await transactions.record(tx, "RegisterTable", str(new.table), origin)


async def _drop(tx: Transaction, id: Identifier, origin: Origin) -> tuple[Table, str]:
    table = await get(tx, id)
    await delete_in(tx, table)
    await removals.enqueue(tx, [table.location])
    return table, await transactions.record(tx, "DropTable", str(table), origin)


async def _rename(tx: Transaction, id: Identifier, new: Identifier, origin: Origin) -> str:
    table = await get(tx, id)
    namespace, name = split_table(new)
    await namespaces.get(tx, namespace)
    await check_free(tx, new)
    renamed = await tx.fetch(
        "UPDATE objects SET namespace = $2, name = $3 "
        "WHERE id = $1 AND namespace = $4 AND name = $5 RETURNING id",
        table.id,
        to_path(namespace),
        name,
        to_path(table.namespace),
        table.name,
    )
    if not renamed:
        raise missing(id)
    await grants.moved_in(tx, table.id)
    return await transactions.record(tx, "RenameTable", f"{show(id)} -> {show(new)}", origin)


async def check_new(tx: Transaction, new: NewTable) -> None:
    """Refuse a new table whose name is taken or whose namespace is missing."""
    await namespaces.get(tx, new.table.namespace)
    await check_free(tx, new.table.identifier)


async def insert_in(tx: Transaction, new: NewTable, origin: Origin = NOBODY) -> None:
    table = new.table
    await check_new(tx, new)
    if new.is_placed:
        await locations.check_table(tx, table.location)
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ($1, $2, $3, 'table', $4, now_millis())",
        table.id,
        to_path(table.namespace),
        table.name,
        encode_properties(table.properties),
    )
    await tx.fetch(
        "INSERT INTO tables (id, location, managed) VALUES ($1, $2, $3)",
        table.id,
        table.location,
        int(table.managed),
    )
    await grants.give_owner_in(tx, origin, Target(TABLE, table.identifier), table.id)


async def delete_in(tx: Transaction, table: Table) -> None:
    await tx.fetch("DELETE FROM table_versions WHERE table_id = $1", table.id)
    await tx.fetch("DELETE FROM columns WHERE table_id = $1", table.id)
    await jobs.cancel_slots_in(tx, table.id, f"table {table} is not in the catalog any more")
    # On PostgreSQL, whoever comes second finds nothing to delete.
    if not await tx.fetch("DELETE FROM tables WHERE id = $1 RETURNING id", table.id):
        raise missing(table.identifier)
    await tx.fetch("DELETE FROM objects WHERE id = $1", table.id)
    await grants.forget_in(tx, table.id)


async def check_free(tx: Transaction, id: Identifier) -> None:
    namespace, name = split_table(id)
    row = await tx.fetch_one(
        "SELECT kind FROM objects WHERE namespace = $1 AND name = $2", to_path(namespace), name
    )
    if row is not None:
        raise TableAlreadyExists(
            f"{row[0]} {show(id)} already exists",
            detail="choose another name, or drop it first",
            subject=id,
        )


async def _list(
    catalog: Catalog,
    page: PageRequest,
    include_declared: bool,
    namespace: Identifier | None,
    only: Sequence[str] | None,
) -> Page[Table]:
    """Read a page; when declared tables are left out, go on until the page is full."""
    found: list[Table] = []
    after = page.after
    while True:
        rows = await _list_rows(catalog.database, namespace, after, page.limit + 1, only)
        tables = [to_table(row) for row in rows]
        found += [t for t in tables if include_declared or await has_data(catalog, t)]
        if len(rows) <= page.limit or len(found) > page.limit:
            return cut_page(page, found, [_key(table, namespace) for table in found])
        after = _key(tables[-1], namespace)


def _key(table: Table, namespace: Identifier | None) -> str:
    return to_path(table.identifier) if namespace is None else table.name


async def _list_rows(
    tx: Transaction,
    namespace: Identifier | None,
    after: str | None,
    limit: int,
    only: Sequence[str] | None,
) -> list[Row]:
    select = f"SELECT {COLUMNS} FROM objects o JOIN tables t ON t.id = o.id WHERE"
    if namespace is not None:
        return await tx.fetch(
            f"{select} o.namespace = $1 AND o.name > $2 {_seen(only, 4)} ORDER BY o.name LIMIT $3",
            *(to_path(namespace), after or "", limit),
            *(only or ()),
        )
    last = from_path(after or "")
    return await tx.fetch(
        f"{select} (o.namespace, o.name) > ($1, $2) {_seen(only, 4)} "
        "ORDER BY o.namespace, o.name LIMIT $3",
        *(to_path(last[:-1]), last[-1] if last else "", limit),
        *(only or ()),
    )


def _seen(only: Sequence[str] | None, first: int) -> str:
    """The condition that these grantees, parameters from the first number on, see a table."""
    return "" if only is None else f"AND {grants.visible_objects(only, first)}"


def to_table(row: Row) -> Table:
    id, namespace, name, location, managed, properties, *more = row
    return Table(
        id,
        from_path(namespace),
        name,
        location,
        bool(managed),
        decode_properties(properties),
        bool(more and more[0]),
    )


def _read_flag(text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidRequest(f"property {MANAGED_PROPERTY} is {text!r}", detail="use true or false")
    return text.lower() == "true"
