"""Dialects of Iceberg views: translate their SQL, and trace where their columns come from.

The rules about SQL are in `penstock.sql`; this module looks up the view and the catalog's columns.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_tables import iceberg_tables, metadata_files
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.names import tables
from penstock.errors import (
    DamagedFile,
    FileNotFound,
    InvalidRequest,
    InvalidTableState,
    NotFound,
    Unprocessable,
)
from penstock.iceberg.metadata import current_representations, current_schema, current_version
from penstock.iceberg.sql_types import list_columns
from penstock.lance.doors import sql_types
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.model.rights import ICEBERG_TABLE
from penstock.model.tables import MAIN
from penstock.sql.doors import lineage, reads, references
from penstock.sql.doors import translate as translating
from penstock.sql.results import Columns, Refusal

Json = dict[str, Any]
# Whether the caller may read a table or view.
MayRead = Callable[[Identifier], Awaitable[bool]]

MAX_REFERENCES = 100


async def translate(
    catalog: Catalog, id: Identifier, target: str, source: str | None, may_read: MayRead
) -> Json:
    """The view's current SQL in another dialect; Unprocessable when that is not safe."""
    metadata = await get_metadata(catalog, id)
    chosen, sql = choose_sql(metadata, target, source)
    if chosen.lower() == target.lower():
        return {"dialect": target, "source": chosen, "sql": sql}
    found = await _reason(catalog, metadata, sql, chosen, target, may_read)
    return {"source": chosen} | found


async def trace(catalog: Catalog, id: Identifier, source: str | None, may_read: MayRead) -> Json:
    """Which columns feed which column of the view."""
    metadata = await get_metadata(catalog, id)
    chosen, sql = choose_sql(metadata, None, source)
    return {"source": chosen} | await _reason(catalog, metadata, sql, chosen, None, may_read)


async def _reason(
    catalog: Catalog,
    metadata: Json,
    sql: str,
    dialect: str,
    target: str | None,
    may_read: MayRead,
) -> Json:
    """Look up what the statement reads, then translate or trace it.

    Anyone may write a statement that reads anything, so tables that the caller may not read count
    as missing.
    """
    schemas, namespace, held = await _look_up(catalog, metadata, sql, dialect, may_read)
    found = await catalog.lake.run(_judge, sql, dialect, target, schemas, namespace, held)
    if not isinstance(found, dict):
        where = f" (line {found.line}, column {found.column})" if found.line else ""
        raise Unprocessable(f"{found.reason}{where}")
    return found


async def find_reads(
    catalog: Catalog, metadata: Json, dialect: str, sql: str
) -> "reads.Reads | Refusal":
    """The columns that a representation of a view reads, by table, whoever asks."""
    try:
        known = await _look_up(catalog, metadata, sql, dialect, _everybody)
    except Unprocessable as error:
        return Refusal(error.message)
    return await catalog.lake.run(_list_reads, sql, dialect, *known)


async def find_schemas(
    catalog: Catalog, metadata: Json, dialect: str, sql: str
) -> "dict[Identifier, Columns | None]":
    """The columns of what a representation of a view reads, whoever asks."""
    return (await _look_up(catalog, metadata, sql, dialect, _everybody))[0]


async def find_columns_of(catalog: Catalog, id: str) -> "Columns | None":
    """The columns of a table or view by its id; None when they are not known."""
    row = await catalog.database.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", id)
    return None if row is None else await _find_columns(catalog, (*from_path(row[0]), row[1]))


async def _everybody(id: Identifier) -> bool:
    return True


async def _look_up(
    catalog: Catalog, metadata: Json, sql: str, dialect: str, may_read: MayRead
) -> "tuple[dict[Identifier, Columns | None], Identifier, str | None]":
    """The columns of what a statement reads, and the defaults for its names."""
    version = current_version(metadata)
    namespace, held = tuple(version["default-namespace"]), version.get("default-catalog")
    read = await catalog.lake.run(_find_references, sql, dialect, namespace, held)
    if len(read) > MAX_REFERENCES:
        raise Unprocessable(f"the statement reads {len(read)} tables, too many to look up")
    named = [id for each in read for id in await _find_spellings(catalog, each)]
    known = {id: await _find_columns(catalog, id) for id in named if await may_read(id)}
    return {id: columns for id, columns in known.items() if columns != {}}, namespace, held


def _list_reads(
    sql: str,
    dialect: str,
    schemas: "dict[Identifier, Columns | None]",
    namespace: Identifier,
    held: str | None,
) -> "reads.Reads | Refusal":
    return reads.list_reads(sql, dialect, schemas, namespace, held)


def _find_references(
    sql: str, dialect: str, namespace: Identifier, held: str | None
) -> tuple[Identifier, ...]:
    # In a thread, because the first of these loads sqlglot.
    return references.find_references(sql, dialect, namespace, held)


def _judge(
    sql: str,
    dialect: str,
    target: str | None,
    schemas: "dict[Identifier, Columns | None]",
    namespace: Identifier,
    held: str | None,
) -> "Json | Refusal":
    found = (
        lineage.trace_columns(sql, dialect, schemas, namespace, held)
        if target is None
        else translating.translate(sql, dialect, target, schemas, namespace, held)
    )
    return found if isinstance(found, Refusal) else found.to_json()


async def _find_spellings(catalog: Catalog, id: Identifier) -> list[Identifier]:
    """The names that a reference may mean: an exact match, else those that differ only in case.

    Dialects fold unquoted names, and decide themselves which of these is meant.
    """
    if await tables.find_kind(catalog.database, id) is not None:
        return [id]
    namespace = to_path(id[:-1])
    rows = await catalog.database.fetch(
        "SELECT namespace, name FROM objects "
        "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) "
        "AND kind <> 'function' LIMIT 10",
        *(namespace, namespace.lower(), id[-1]),
    )
    return [(*from_path(row[0]), row[1]) for row in rows]


async def _find_columns(catalog: Catalog, id: Identifier) -> "Columns | None":
    """The columns of a table or view: None when unknown, empty when it does not exist."""
    kind = await tables.find_kind(catalog.database, id)
    try:
        if kind is None:
            return {}
        if kind == iceberg_views.KIND:
            return list_columns(current_schema(await get_metadata(catalog, id)))
        if kind == ICEBERG_TABLE:
            return await _find_table_columns(catalog, id)
        table = await tables.get(catalog.database, id)
        return await datasets.read(
            catalog, table, MAIN, None, lambda dataset: sql_types.list_columns(dataset.schema)
        )
    except NotFound:
        return {}  # dropped since
    except InvalidTableState:
        return None  # declared, but not written yet


async def _find_table_columns(catalog: Catalog, id: Identifier) -> "Columns | None":
    table = await iceberg_tables.get(catalog.database, id)
    try:
        _, text = await metadata_files.load(catalog, table)
    except (DamagedFile, FileNotFound):
        return None
    document: Json = msgspec.json.decode(text)
    wanted = document["current-schema-id"]
    return next(
        list_columns(each) for each in document["schemas"] if each.get("schema-id", 0) == wanted
    )


async def get_metadata(catalog: Catalog, id: Identifier) -> Json:
    view = await iceberg_views.get(catalog.database, id)
    metadata: Json = msgspec.json.decode(view.document.text)
    return metadata


def choose_sql(metadata: Json, target: str | None, source: str | None) -> tuple[str, str]:
    """Choose a representation: the requested one, else one in the target, else the first."""
    found = current_representations(metadata)
    for wanted in (source, target) if source is None else (source,):
        for dialect, sql in found:
            if wanted is not None and dialect.lower() == wanted.lower():
                return dialect, sql
    if source is not None:
        raise InvalidRequest(
            f"the view has no SQL in the dialect {source!r}",
            detail="it has " + ", ".join(dialect for dialect, _ in found),
        )
    return found[0]


def read_query(metadata: Json) -> tuple[str, str, Identifier, str | None]:
    """The dialect, SQL and default namespace that a materialized view reads from a view."""
    version = current_version(metadata)
    namespace, held = tuple(version["default-namespace"]), version.get("default-catalog")
    return (*choose_sql(metadata, "spark", None), namespace, held)
