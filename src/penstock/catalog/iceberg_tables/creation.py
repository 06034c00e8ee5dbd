"""New Iceberg tables: made at once, staged for a commit that makes them, or registered."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_tables import iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.catalog.iceberg_views.metadata_files import plain, spell
from penstock.catalog.names import locations, tables, transactions
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest
from penstock.iceberg.doors import table_create, table_requests
from penstock.iceberg.tables.changes import find_rows_snapshot
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.origins import NOBODY, Origin

Json = dict[str, Any]

FOLDER_KIND = "iceberg"


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table with its metadata as JSON; `record` is None of one that is only staged."""

    record: IcebergTable | None
    text: bytes
    location: str


async def create(
    catalog: Catalog, id: Identifier, request: "table_requests.CreateTable", origin: Origin = NOBODY
) -> LoadedTable:
    """Make a table with its first metadata file, or only its metadata if it is to be staged."""
    properties = await catalog.database.read(iceberg_tables.check_new, id)
    table_uuid = uuid.uuid4()
    folder = ""
    if request.location is None:
        folder = new_folder(catalog, id, table_uuid, properties)
    location = request.location or spell(folder)
    now = await read_clock(catalog.database)
    document = await catalog.lake.run(
        table_create.new_document, request, location=location, uuid=str(table_uuid), now_ms=now
    )
    planned = await catalog.lake.run(metadata_files.plan, catalog.lake, document, None)
    table = IcebergTable(
        uuid.uuid4().hex,
        id[:-1],
        id[-1],
        document["table-uuid"],
        planned.location,
        folder,
        planned.path,
        planned.target.location,
    )
    # A new folder directly below the root has nothing around it.
    is_placed = bool(request.location or properties.get("location"))
    is_placed = is_placed or not table.holds(table.metadata_folder)
    if is_placed:
        await catalog.database.read(check_places, table, early=True)
    if request.stage:
        return LoadedTable(None, planned.text, document["location"])
    await catalog.lake.run(metadata_files.write, planned)
    crash_point("table file written")
    await metadata_files.publish(
        catalog,
        [(table.id, None, planned.path)],
        _insert,
        table,
        "CreateIcebergTable",
        origin,
        is_placed=is_placed,
    )
    crash_point("table recorded")
    return LoadedTable(table, catalog.documents.keep(table.state, planned.text), location)


async def register(
    catalog: Catalog,
    id: Identifier,
    request: "table_requests.RegisterTable",
    origin: Origin = NOBODY,
) -> LoadedTable:
    """Register a table by its metadata file, with its history; or make a table what a file says."""
    kind = await catalog.database.read(_find_kind, id)
    if kind is not None and not (request.overwrite and kind == iceberg_tables.KIND):
        raise iceberg_tables.taken(id, kind)
    location = request.metadata_location
    document, folder = await catalog.lake.run(
        metadata_files.read_registered, catalog.lake, location
    )
    text = msgspec.json.encode(document)
    table = IcebergTable(
        uuid.uuid4().hex,
        id[:-1],
        id[-1],
        document["table-uuid"],
        catalog.lake.accept(plain(document["location"])),
        "",
        location,
        folder,
        rows_snapshot=find_rows_snapshot(document, None, 0),
    )
    table = await catalog.database.write(_register, table, request.overwrite, origin)
    return LoadedTable(table, catalog.documents.keep(table.state, text), document["location"])


def new_folder(
    catalog: Catalog, id: Identifier, table_uuid: uuid.UUID, properties: dict[str, str]
) -> str:
    """The folder that a new table gets: it follows from the table's name and uuid."""
    given = properties.get("location")
    above = plain(given, "the namespace's location") if given else None
    return catalog.lake.new_folder(above, ".".join(id), table_uuid.hex[:16], FOLDER_KIND)


async def check_places(tx: Transaction, table: IcebergTable, *, early: bool = False) -> None:
    """Refuse a table whose files would be among those of something else."""
    await locations.check_iceberg_table(tx, table.location, table.id, early=early)
    if not table.holds(table.metadata_folder):
        await locations.check_view(tx, table.metadata_folder, besides=table.id, early=early)


async def read_clock(tx: Transaction) -> int:
    """The time of the database, in milliseconds."""
    row = await tx.fetch_one("SELECT now_millis()")
    return int(row[0]) if row else 0


async def _find_kind(tx: Transaction, id: Identifier) -> str | None:
    kind = await tables.find_kind(tx, id)
    if kind is None:
        await iceberg_tables.check_new(tx, id)
    return kind


async def _insert(
    tx: Transaction, table: IcebergTable, operation: str, origin: Origin, *, is_placed: bool = True
) -> None:
    await iceberg_tables.check_new(tx, table.identifier)
    if is_placed:
        await check_places(tx, table)
    await iceberg_tables.insert_in(tx, table, origin)
    await transactions.record(tx, operation, show(table.identifier), origin)


async def _register(
    tx: Transaction, table: IcebergTable, overwrite: bool, origin: Origin
) -> IcebergTable:
    base = await iceberg_tables.find(tx, table.identifier) if overwrite else None
    if base is not None:
        folder = base.folder if base.holds(table.location) else ""
        table = replace(table, id=base.id, folder=folder)
    await _check_file(tx, table)
    if base is None:
        await _insert(tx, table, "RegisterIcebergTable", origin)
        return table
    await check_places(tx, table)
    if not await iceberg_tables.swap_in(tx, base, table):
        raise ConcurrentCommit(
            f"table {show(table.identifier)} was changed meanwhile", detail="retry"
        )
    await transactions.record(tx, "RegisterIcebergTable", show(table.identifier), origin)
    return table


async def _check_file(tx: Transaction, table: IcebergTable) -> None:
    """Refuse a file that is another table's metadata now."""
    # By folder and file name, because the whole location may be spelt in several ways.
    rows = await tx.fetch(
        "SELECT o.namespace, o.name, i.metadata_location FROM iceberg_tables i "
        "JOIN objects o ON o.id = i.id WHERE i.metadata_folder = relative($1) AND i.id <> $2",
        *(table.metadata_folder, table.id),
    )
    file = table.metadata_location.rpartition("/")[2]
    for namespace, name, location in rows:
        if location.rpartition("/")[2] == file:
            raise InvalidRequest(
                f"{table.metadata_location} is the metadata of table "
                f"{show((*from_path(namespace), name))}",
                detail="two tables would commit to the same files; drop that one first, "
                "without a purge",
            )
