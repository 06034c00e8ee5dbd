"""Iceberg views by their query alone: this server finds their columns, as of materialized views."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views import replace as view_replacing
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.statements import analyses
from penstock.catalog.statements.lookup import (
    Lookup,
    find_near,
    look_up,
    open_sources,
)
from penstock.errors import InvalidRequest, TypesUnknown
from penstock.iceberg.doors import requests
from penstock.iceberg.metadata import Json, current_version
from penstock.lance.errors import translated
from penstock.model.identifiers import Identifier
from penstock.model.origins import NOBODY, Origin
from penstock.sql.doors import columns as columns_door
from penstock.sql.doors import queries
from penstock.sql.doors import requests as sql_requests

T = TypeVar("T")

SUMMARY = {"engine-name": "penstock"}


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The query of a view; single names in it are looked up in the namespace."""

    # SQL, or one of the forms that queries of materialized views have.
    sql: str
    namespace: Identifier
    # None is Spark's, of which only what other dialects do not read differently.
    dialect: str | None = None
    cluster: str | None = None

    def to_version(self) -> Json:
        """A version of the view, without its ids."""
        dialect = "spark" if self.dialect is None else self.dialect.strip().lower()
        return {
            "version-id": 1,
            "schema-id": -1,
            "summary": SUMMARY,
            "default-namespace": list(self.namespace),
            "representations": [{"type": "sql", "sql": self.sql, "dialect": dialect}],
        }


async def create(
    catalog: Catalog, id: Identifier, asked: ViewQuery, origin: Origin = NOBODY
) -> IcebergView:
    """Make a view of a query that reads what the caller may read."""
    await catalog.database.read(iceberg_views.check_new, id)
    asked, schema = await _resolve(catalog, asked, origin)
    body = {"name": id[-1], "schema": schema, "view-version": asked.to_version(), "properties": {}}
    request = await catalog.lake.run(lambda: requests.read_create(body))
    return await iceberg_views.create(catalog, id, request, origin)


async def alter(
    catalog: Catalog, id: Identifier, asked: ViewQuery, origin: Origin = NOBODY
) -> IcebergView:
    """Give a view another query, as a new version of it."""
    view = await iceberg_views.get(catalog.database, id)
    before = current_version(msgspec.json.decode(view.document.text))
    asked, schema = await _resolve(catalog, asked, origin, view.id)
    version = {**asked.to_version(), "version-id": before["version-id"] + 1}
    body = {
        "updates": [
            {"action": "add-schema", "schema": schema},
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
    }
    request = await catalog.lake.run(lambda: requests.read_replace(body))
    return await view_replacing.replace(catalog, id, request, origin)


async def _resolve(
    catalog: Catalog, asked: ViewQuery, origin: Origin, itself: str = ""
) -> tuple[ViewQuery, Json]:
    """The query as SQL, and its columns as Iceberg knows them.

    What the caller may not read counts as missing.
    """
    found = Lookup(reading_as(catalog.database, origin.grantees))
    run = catalog.workers.run
    try:
        query = await run(queries.read_view, asked.sql, asked.dialect, asked.namespace)
        query = await look_up(catalog, query, found)
        if itself in found.ids.values():
            raise InvalidRequest(
                "the view would read itself", detail="name something else in its query"
            )
        opened = await open_sources(catalog, found)
        if query.language == "lance":
            sql = await run(_run, columns_door.write_spark, query, opened)
            asked = ViewQuery(sql, (), "spark", asked.cluster)
            query = await look_up(catalog, await run(queries.read_sql, sql, "spark", ()), found)
        elif asked.sql.lstrip().startswith("{") and (said := query.statement) is not None:
            asked = ViewQuery(said.sql, said.namespace, said.dialect, asked.cluster)
        return asked, await _find_columns(catalog, asked, query, opened)
    except InvalidRequest as error:
        near = found.missing and await find_near(catalog, found.missing[0], found.may_read)
        raise _reword(error, near or error.detail) from error


async def _find_columns(
    catalog: Catalog,
    asked: ViewQuery,
    query: "sql_requests.Query",
    opened: "Mapping[Identifier, sql_requests.SourceTable]",
) -> Json:
    """The columns of a query; where only Spark knows a type, a runner is asked."""
    run = catalog.workers.run
    try:
        return await run(_run, columns_door.find_columns, query, opened)
    except TypesUnknown as unknown:
        told = TypesUnknown(unknown.message, detail="cast it, as in CAST(… AS BIGINT)")
        untyped = await run(columns_door.ask_for_types, query, opened)
        if untyped is None:
            raise told from unknown
        text = await analyses.find_types(catalog, untyped, told, asked.cluster)
    return await run(_run, columns_door.find_columns, query, opened, text)


def _run(work: "Callable[..., T]", *given: Any) -> "T":
    """Work that may ask Lance."""
    with translated():
        return work(*given)


def _reword(error: InvalidRequest, detail: str) -> InvalidRequest:
    """The same error in the words of a request that has a query."""
    message = error.message.removeprefix("source_query: ").replace("source_query", "query")
    return type(error)(f"query: {message}", detail=detail.replace("source_query", "query"))
