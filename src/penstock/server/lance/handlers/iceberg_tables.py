"""Operations that tell of Iceberg tables; what reads and changes them is the Iceberg protocol."""

from typing import Any

import msgspec

from penstock.catalog.iceberg_tables import iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.errors import DamagedFile, FileNotFound
from penstock.lance.read import details
from penstock.model.identifiers import to_path
from penstock.server.lance.call import Body, Call
from penstock.sql.doors import iceberg_types


class IcebergTables(msgspec.Struct, omit_defaults=True):
    tables: list[str]
    page_token: str | None = None


class DescribedIcebergTable(msgspec.Struct, omit_defaults=True):
    name: str
    namespace: list[str]
    uuid: str
    format_version: int
    location: str
    metadata_location: str
    schema: dict[str, Any]
    # The transforms of the current specification, as in `day(at)`.
    partitioning: list[str]
    # How many there are.
    snapshots: int
    # Milliseconds.
    updated_at: int
    # The current snapshot, by its id, and what it says of its rows.
    snapshot: str | None = None
    rows: int | None = None
    branches: list[str] = []
    tags: list[str] = []
    properties: dict[str, str] = {}


_body = msgspec.json.Decoder(Body)


async def list_names(call: Call) -> IcebergTables:
    page = call.page(f"iceberg_tables:{to_path(call.id)}")
    found = await call.catalog.database.read(iceberg_tables.list_names, call.id, page, call.only)
    return IcebergTables(found.items, found.token)


async def describe(call: Call) -> DescribedIcebergTable:
    call.decode(_body)
    table = await iceberg_tables.get(call.catalog.database, call.id)
    try:
        table, text = await metadata_files.load(call.catalog, table)
    except FileNotFound as error:
        raise DamagedFile(error.message, detail=error.detail) from error
    return await call.catalog.workers.run(_describe, table, text)


def _describe(table: IcebergTable, text: bytes) -> DescribedIcebergTable:
    document = msgspec.json.decode(text)
    schemas = {each.get("schema-id", 0): each for each in document["schemas"]}
    schema = schemas[document["current-schema-id"]]
    current = document.get("current-snapshot-id")
    snapshots = document.get("snapshots") or []
    newest = next((each for each in snapshots if each["snapshot-id"] == current), None)
    rows = ((newest or {}).get("summary") or {}).get("total-records", "")
    refs = document.get("refs") or {}
    return DescribedIcebergTable(
        name=table.name,
        namespace=list(table.namespace),
        uuid=table.uuid,
        format_version=document["format-version"],
        location=document["location"],
        metadata_location=table.metadata_location,
        schema=details.to_json_schema(iceberg_types.to_arrow(schema, iceberg_types.TO_ARROW)),
        partitioning=_list_partitioning(document, schema),
        snapshots=len(snapshots),
        updated_at=document["last-updated-ms"],
        # As text: JSON's readers in browsers lose digits of such numbers.
        snapshot=None if newest is None else str(current),
        rows=int(rows) if str(rows).isdigit() else None,
        branches=sorted(name for name, ref in refs.items() if ref["type"] == "branch"),
        tags=sorted(name for name, ref in refs.items() if ref["type"] == "tag"),
        properties=document.get("properties") or {},
    )


def _list_partitioning(document: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    names = {field["id"]: field["name"] for field in schema["fields"]}
    wanted = document["default-spec-id"]
    specs = (each for each in document["partition-specs"] if each["spec-id"] == wanted)
    told = []
    for field in (next(specs, None) or {}).get("fields") or ():
        sources = field.get("source-ids") or [field["source-id"]]
        told.append(f"{field['transform']}({', '.join(names.get(id, str(id)) for id in sources)})")
    return told
