"""Tables: declare and find; `table_changes` renames and drops them, `table_listing` lists them."""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Target
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import dependents, locations, namespaces, transactions
from penstock.catalog.versions import reconcile, versions
from penstock.database.interface import Row, Transaction
from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    NotALanceTable,
    TableAlreadyExists,
    TableNotFound,
    ViewIsNoTable,
)
from penstock.model.identifiers import Identifier, from_path, show, split_table, to_path
from penstock.model.origins import NOBODY, Origin
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.rights import ICEBERG_TABLE, TABLE, VIEW
from penstock.model.system_tables import SYSTEM
from penstock.model.tables import MAIN, Table

OWN_PROPERTIES = "penstock."
MANAGED_PROPERTY = f"{OWN_PROPERTIES}managed_versioning"
COLUMNS = "o.id, o.namespace, o.name, absolute(t.location), t.managed, o.properties"
HAS_BOUND = "EXISTS (SELECT 1 FROM columns c WHERE c.table_id = t.id)"
IS_VIEW = "EXISTS (SELECT 1 FROM materialized_views m WHERE m.id = t.id)"


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table to declare; `is_placed` when the client chose its location."""

    table: Table
    is_placed: bool


async def declare(catalog: Catalog, new: NewTable, origin: Origin = NOBODY) -> str:
    """Reserve a table's name and location; returns the transaction."""
    return await catalog.database.write(declare_in, new, origin)


async def get(tx: Transaction, id: Identifier) -> Table:
    """Get the table, or raise the error that says whether it or its namespace is missing."""
    namespace, name = split_table(id)
    row = await tx.fetch_one(
        f"SELECT {COLUMNS}, {HAS_BOUND}, {IS_VIEW} FROM objects o JOIN tables t ON t.id = o.id "
        "WHERE o.namespace = $1 AND o.name = $2",
        to_path(namespace),
        name,
    )
    if row is None:
        # The system's own namespace is there as soon as a table of it is.
        if namespace != SYSTEM:
            await namespaces.get(tx, namespace)
        raise await _explain_missing(tx, id)
    return to_table(row)


async def find_by_id(tx: Transaction, id: str) -> Table | None:
    """Find the table with this id, whatever its name is now."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS}, {HAS_BOUND}, {IS_VIEW} FROM objects o JOIN tables t ON t.id = o.id "
        "WHERE o.id = $1",
        id,
    )
    return None if row is None else to_table(row)


async def find_at(tx: Transaction, location: str) -> Table | None:
    """Find the table at this location."""
    row = await tx.fetch_one(
        f"SELECT {COLUMNS}, {HAS_BOUND}, {IS_VIEW} FROM objects o JOIN tables t ON t.id = o.id "
        "WHERE t.location = relative($1)",
        location,
    )
    return None if row is None else to_table(row)


def check_rows(table: Table) -> Table:
    """Get the table, unless it is a materialized view's, whose rows only a refresh writes."""
    if table.is_view:
        raise InvalidTableState(
            f"{table} is a materialized view: its rows are what its query gives",
            detail="change the tables that it reads, then refresh it",
        )
    return table


async def _explain_missing(
    tx: Transaction, id: Identifier
) -> TableNotFound | ViewIsNoTable | NotALanceTable:
    """The error for a name that no Lance table has; something else may have it."""
    kind = await find_kind(tx, id)
    if kind == VIEW:
        return ViewIsNoTable(
            f"{show(id)} is a view, not a table",
            detail="it holds no rows: query it, or change the tables that it reads",
        )
    if kind == ICEBERG_TABLE:
        return NotALanceTable(
            f"{show(id)} is an Iceberg table, not a Lance table",
            detail="read and change it with a client of the Iceberg protocol",
        )
    if kind is not None:
        return TableNotFound(f"{show(id)} is a {kind}, not a table", detail=f"use it as a {kind}")
    return missing(id)


def missing(id: Identifier) -> TableNotFound:
    return TableNotFound(
        f"table {show(id)} does not exist", detail="declare or register it, or check its id"
    )


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
    """Choose id and location of a new table; a property can override who manages its versions."""
    namespace, name = split_table(id)
    check_properties(properties)
    table_id = uuid.uuid4().hex
    placed = (
        catalog.lake.new_location(".".join(id), table_id[:16])
        if location is None
        else catalog.lake.accept(location)
    )
    managed = _read_flag(properties.get(MANAGED_PROPERTY), managed)
    table = Table(table_id, namespace, name, placed, managed, properties)
    return NewTable(table, location is not None)


def check_properties(properties: Mapping[str, str]) -> None:
    """Refuse properties that the server itself reports in descriptions: clients rely on them."""
    for key in properties:
        if key.startswith(OWN_PROPERTIES) and key != MANAGED_PROPERTY:
            raise InvalidRequest(
                f"the property {key!r} is the server's own",
                detail=f"use a key that does not begin with {OWN_PROPERTIES!r}",
            )


def check_client_properties(properties: Collection[str]) -> None:
    """Refuse to change properties by which the server knows a table."""
    check_properties(dict.fromkeys(properties, ""))
    if MANAGED_PROPERTY in properties:
        raise InvalidRequest(
            f"the property {MANAGED_PROPERTY!r} is set when a table is made",
            detail="leave it out",
        )


async def declare_in(tx: Transaction, new: NewTable, origin: Origin) -> str:
    await insert_in(tx, new, origin)
    return await transactions.record(tx, "DeclareTable", str(new.table), origin)


async def check_new(tx: Transaction, new: NewTable) -> None:
    """Refuse a new table whose name or place is taken or whose namespace is missing."""
    if new.table.namespace != SYSTEM:
        await namespaces.get(tx, new.table.namespace)
    await check_free(tx, new.table.identifier)
    if new.is_placed:
        await locations.check_table(tx, new.table.location, early=True)


async def insert_in(tx: Transaction, new: NewTable, origin: Origin = NOBODY) -> None:
    table = new.table
    await namespaces.provide_in(tx, table.namespace)
    await check_free(tx, table.identifier)
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
        "INSERT INTO tables (id, location, managed) VALUES ($1, relative($2), $3)",
        table.id,
        table.location,
        int(table.managed),
    )
    await grants.give_owner_in(tx, origin, Target(TABLE, table.identifier), table.id)


async def delete_in(tx: Transaction, table: Table) -> None:
    reason = f"table {table} is not in the catalog any more"
    # On PostgreSQL, of two concurrent drops the second finds nothing to delete.
    if await dependents.delete_records(tx, table.id, reason) is None:
        raise missing(table.identifier)


async def find_kind(tx: Transaction, id: Identifier) -> str | None:
    """The kind of what has this name: a table of either format, a view or a function."""
    namespace, name = split_table(id)
    row = await tx.fetch_one(
        "SELECT kind FROM objects WHERE namespace = $1 AND name = $2", to_path(namespace), name
    )
    return None if row is None else row[0]


def name_kind(kind: str) -> str:
    """A kind in the words of the Iceberg protocol, which has one kind of table."""
    return "Table" if kind in (TABLE, ICEBERG_TABLE) else kind.capitalize()


async def check_free(tx: Transaction, id: Identifier) -> None:
    if (kind := await find_kind(tx, id)) is not None:
        raise TableAlreadyExists(
            f"{kind} {show(id)} already exists",
            detail="choose another name, or drop it first",
            subject=id,
        )


def to_table(row: Row) -> Table:
    id, namespace, name, location, managed, properties, *more = row
    return Table(
        id,
        from_path(namespace),
        name,
        location,
        bool(managed),
        decode_properties(properties),
        *map(bool, more),
    )


def _read_flag(text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise InvalidRequest(f"property {MANAGED_PROPERTY} is {text!r}", detail="use true or false")
    return text.lower() == "true"
