"""Iceberg tables as the sources of a query: their columns, by their current schema."""

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_tables import iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.errors import InvalidRequest, TableNotFound
from penstock.iceberg.tables.changes import current_schema
from penstock.model.identifiers import from_path, show
from penstock.sql.doors import iceberg_types, requests


async def open_iceberg(catalog: Catalog, id: str, version: int | None) -> "requests.SourceTable":
    """A table with the columns that it has now."""
    row = await catalog.database.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", id)
    if row is None:
        raise InvalidRequest("a table that the query reads was dropped meanwhile", detail="retry")
    name = (*from_path(row[0]), row[1])
    if version is not None:
        raise InvalidRequest(
            f"src_version is {version}, and {show(name)} is an Iceberg table, which has none",
            detail="leave it out: a refresh reads the current snapshot",
        )
    try:
        table = await iceberg_tables.get(catalog.database, name)
    except TableNotFound as error:
        raise InvalidRequest(error.message, detail="retry") from error
    table, text = await metadata_files.load(catalog, table)
    return await catalog.workers.run(_to_source, table, text)


def _to_source(table: IcebergTable, text: bytes) -> "requests.SourceTable":
    schema = current_schema(msgspec.json.decode(text))
    if (unread := iceberg_types.find_unread(schema)) is not None:
        column, kind = unread
        raise InvalidRequest(
            f"column {column} of {show(table.identifier)} is of Iceberg's type {kind}, which "
            "views do not read",
            detail="drop the column, or write the table without it",
        )
    return requests.SourceTable(
        id=table.id,
        identifier=table.identifier,
        schema=iceberg_types.to_arrow(schema, iceberg_types.TO_ARROW),
        is_iceberg=True,
        fields={field["name"]: field["id"] for field in schema["fields"]},
        shapes={
            field["name"]: msgspec.json.encode(field, order="sorted").decode()
            for field in schema["fields"]
        },
    )
