"""Operations on views that hold no rows, which are Iceberg views."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.iceberg_views import definitions, iceberg_views
from penstock.catalog.iceberg_views.definitions import ViewQuery
from penstock.catalog.iceberg_views.dialects import read_query
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.impact import view_drops
from penstock.errors import InvalidRequest
from penstock.iceberg.metadata import current_representations, current_schema, current_version
from penstock.lance.read import details
from penstock.model.identifiers import Identifier, check_identifier, to_path
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.lancedb.headers import LANCEDB_HEADER
from penstock.sql.doors import iceberg_types

Sql = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000, pattern="^[^\\x00]*$")]


class DefineView(Body):
    query: Sql | None = None
    # Beyond lancedb's form: the dialect, and where single names are looked up first.
    dialect: Text | None = None
    namespace: list[str] | None = None
    cluster: str | None = None


class ShownVersion(msgspec.Struct):
    version: int
    query: str
    dialect: str
    # Milliseconds.
    made_at: int


class DescribedView(msgspec.Struct, omit_defaults=True):
    name: str
    namespace: list[str]
    query: str
    default_database: str
    default_namespace: list[str]
    schema: dict[str, Any]
    # Beyond lancedb's form.
    dialect: str
    dialects: list[str]
    version: int
    # Those that are kept, the newest first.
    versions: list[ShownVersion]
    location: str
    properties: dict[str, str] = {}


class Views(msgspec.Struct, omit_defaults=True):
    views: list[str]
    page_token: str | None = None


class DroppedView(msgspec.Struct):
    """Nothing is left to do, and so there is no job."""


_define = msgspec.json.Decoder(DefineView)
_body = msgspec.json.Decoder(Body)


async def create(call: Call) -> DescribedView:
    asked = _read_query(call, call.id[:-1], None)
    view = await definitions.create(call.catalog, call.id, asked, call.origin)
    return await call.catalog.workers.run(_describe, call, view)


async def describe(call: Call) -> DescribedView:
    call.decode(_body)
    return await describe_newest(call)


async def describe_newest(call: Call, *, in_lance_words: bool = False) -> DescribedView:
    view = await iceberg_views.get(call.catalog.database, call.id)
    return await call.catalog.workers.run(_describe, call, view, in_lance_words)


async def alter(call: Call) -> DescribedView:
    shown = await describe_newest(call)
    # A view in one dialect keeps it; its names are looked up where they were.
    kept = shown.dialect if len(shown.dialects) == 1 else None
    asked = _read_query(call, tuple(shown.default_namespace), kept)
    view = await definitions.alter(call.catalog, call.id, asked, call.origin)
    return await call.catalog.workers.run(_describe, call, view)


async def drop(call: Call) -> DroppedView:
    call.decode(_body)
    await view_drops.drop(call.catalog, call.id, call.origin, call.allowance())
    return DroppedView()


async def list_names(call: Call) -> Views:
    page = call.page(f"views:{to_path(call.id)}")
    found = await iceberg_views.list_names(call.catalog.database, call.id, page, call.only)
    return Views(found.items, found.token)


def _read_query(call: Call, namespace: Identifier, dialect: str | None) -> ViewQuery:
    body = call.decode(_define)
    if body.query is None or not body.query.strip():
        raise InvalidRequest("query is missing", detail="send the query of the view")
    if body.namespace is not None:
        namespace = check_identifier(tuple(body.namespace), "namespace")
    return ViewQuery(body.query, namespace, body.dialect or dialect, body.cluster)


def _describe(call: Call, view: IcebergView, in_lance_words: bool = False) -> DescribedView:
    metadata = msgspec.json.decode(view.document.text)
    dialect, sql, namespace, held = read_query(metadata)
    database = call.headers.values.get(LANCEDB_HEADER)
    is_plain = database is not None and not in_lance_words
    types = iceberg_types.FOR_LANCEDB if is_plain else iceberg_types.TO_ARROW
    schema = iceberg_types.to_arrow(current_schema(metadata), types)
    show = details.to_lance_schema if in_lance_words else details.to_json_schema
    return DescribedView(
        name=view.name,
        namespace=list(view.namespace),
        query=sql,
        # lancedb's word for the catalog; there is one, whatever a client calls it.
        default_database=database or held or "",
        default_namespace=list(namespace),
        schema=show(schema),
        dialect=dialect,
        dialects=[dialect for dialect, _ in current_representations(metadata)],
        version=current_version(metadata)["version-id"],
        versions=_show_versions(metadata),
        location=metadata["location"],
        properties=metadata.get("properties") or {},
    )


def _show_versions(metadata: dict[str, Any]) -> list[ShownVersion]:
    shown = []
    for each in sorted(metadata["versions"], key=lambda each: -each["version-id"]):
        at = {**metadata, "current-version-id": each["version-id"]}
        dialect, sql, *_ = read_query(at)
        shown.append(ShownVersion(each["version-id"], sql, dialect, each["timestamp-ms"]))
    return shown
