"""Dialect care for views: their SQL in another dialect, and where their columns come from.

The rules about SQL are in `dialects`; here are the view's own words and the catalog's columns.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest, InvalidTableState, NotFound, Unprocessable
from penstock.model.identifiers import Identifier, from_path, to_path
from penstock.model.tables import MAIN

if TYPE_CHECKING:
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

    Anybody may write a statement that reads anything: what the caller may not is not there for it.
    """
    from penstock.iceberg.metadata import current_version

    version = current_version(metadata)
    namespace, held = tuple(version["default-namespace"]), version.get("default-catalog")
    run = catalog.lake.run
    references = await run(_find_references, sql, dialect, namespace, held)
    if len(references) > MAX_REFERENCES:
        raise Unprocessable(f"the statement reads {len(references)} tables, too many to look up")
    named = [id for each in references for id in await _find_spellings(catalog, each)]
    known = {id: await _find_columns(catalog, id) for id in named if await may_read(id)}
    schemas = {id: columns for id, columns in known.items() if columns != {}}
    found = await run(_judge, sql, dialect, target, schemas, namespace, held)
    if not isinstance(found, dict):
        where = f" (line {found.line}, column {found.column})" if found.line else ""
        raise Unprocessable(f"{found.reason}{where}")
    return found


def _find_references(
    sql: str, dialect: str, namespace: Identifier, held: str | None
) -> tuple[Identifier, ...]:
    # Imported here, in a thread: sqlglot takes its time to load.
    from penstock.sql.parsing.references import find_references

    return find_references(sql, dialect, namespace, held)


def _judge(
    sql: str,
    dialect: str,
    target: str | None,
    schemas: "dict[Identifier, Columns | None]",
    namespace: Identifier,
    held: str | None,
) -> "Json | Refusal":
    from penstock.sql.resolving.lineage import trace_columns
    from penstock.sql.results import Refusal
    from penstock.sql.translating.translate import translate

    found = (
        trace_columns(sql, dialect, schemas, namespace, held)
        if target is None
        else translate(sql, dialect, target, schemas, namespace, held)
    )
    return found if isinstance(found, Refusal) else found.to_json()


async def _find_spellings(catalog: Catalog, id: Identifier) -> list[Identifier]:
    """The names that a reference may mean: itself, else those that differ in case alone.

    Dialects fold names that are not quoted; which of these is meant, if any, they decide.
    """
    if await iceberg_views.find_kind(catalog.database, id) is not None:
        return [id]
    namespace = to_path(id[:-1])
    rows = await catalog.database.fetch(
        "SELECT namespace, name FROM objects "
        "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) LIMIT 10",
        *(namespace, namespace.lower(), id[-1]),
    )
    return [(*from_path(row[0]), row[1]) for row in rows]


async def _find_columns(catalog: Catalog, id: Identifier) -> "Columns | None":
    """A table's or view's columns: None when they are not known, none when it is not there."""
    from penstock.iceberg.metadata import current_schema
    from penstock.iceberg.sql_types import list_columns
    from penstock.lance.columns.sql_types import list_columns as list_table_columns

    kind = await iceberg_views.find_kind(catalog.database, id)
    try:
        if kind is None:
            return {}
        if kind == iceberg_views.KIND:
            return list_columns(current_schema(await get_metadata(catalog, id)))
        table = await tables.get(catalog.database, id)
        return await datasets.read(
            catalog, table, MAIN, None, lambda dataset: list_table_columns(dataset.schema)
        )
    except NotFound:
        return {}  # dropped since
    except InvalidTableState:
        return None  # declared, but not written yet


async def get_metadata(catalog: Catalog, id: Identifier) -> Json:
    view = await iceberg_views.get(catalog.database, id)
    metadata: Json = msgspec.json.decode(view.document.text)
    return metadata


def choose_sql(metadata: Json, target: str | None, source: str | None) -> tuple[str, str]:
    """The representation to go by: the one asked for, else one in the target, else the first."""
    from penstock.iceberg.metadata import current_representations

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
    """What a materialized view reads of a view: dialect and SQL, and where its names are read."""
    from penstock.iceberg.metadata import current_version

    version = current_version(metadata)
    namespace, held = tuple(version["default-namespace"]), version.get("default-catalog")
    return (*choose_sql(metadata, "spark", None), namespace, held)
