"""Operations on tables as names and places; those on versions are in `versions`."""

import logging
from typing import Any

import msgspec

from penstock.catalog.columns import backfills, computed_columns
from penstock.catalog.impact import renames
from penstock.catalog.materialized_views import materialized_views, view_description
from penstock.catalog.names import table_changes, table_listing, tables
from penstock.catalog.upkeep import policies
from penstock.catalog.versions import reconcile
from penstock.errors import (
    InvalidRequest,
    NotALanceTable,
    TableNotFound,
    Unavailable,
    ViewIsNoTable,
)
from penstock.lance.read import details
from penstock.model.branches import check_branch, check_tag
from penstock.model.identifiers import check_identifier, check_name, to_path
from penstock.model.tables import Table, TableVersion
from penstock.server.lance.call import Body, Call, Version, choose
from penstock.server.lance.handlers.upkeep import policies as upkeep_policies
from penstock.server.lance.handlers.views import iceberg as iceberg_views
from penstock.server.lance.handlers.views import rows as view_rows
from penstock.server.lance.lancedb.headers import LANCEDB_HEADER
from penstock.server.transport.http import NOT_STORED, Reply

log = logging.getLogger(__name__)

BOUND_PROPERTY = "penstock.columns"
UPKEEP_PROPERTY = "penstock.upkeep"


class DeclareTable(Body):
    location: str | None = None
    vend_credentials: bool | None = None
    properties: dict[str, str] | None = None


class RegisterTable(Body):
    location: str
    mode: str | None = None
    properties: dict[str, str] | None = None


class DescribeTable(Body):
    version: Version | None = None
    tag: str | None = None
    branch: str | None = None
    with_table_uri: bool | None = None
    load_detailed_metadata: bool | None = None
    check_declared: bool | None = None
    vend_credentials: bool | None = None
    # Ours: also read rows, to count those of each bound column by state.
    count_rows: bool | None = None


class TableExists(Body):
    version: Version | None = None
    branch: str | None = None


class RenameTable(Body):
    new_table_name: str
    new_namespace_id: list[str] | None = None


class DeclaredTable(msgspec.Struct, omit_defaults=True):
    location: str
    properties: dict[str, str]
    managed_versioning: bool | None = None
    storage_options: dict[str, str] | None = None
    transaction_id: str | None = None


class RemovedTable(msgspec.Struct, omit_defaults=True):
    id: list[str]
    location: str
    properties: dict[str, str]
    transaction_id: str | None = None


class DescribedTable(msgspec.Struct, omit_defaults=True):
    location: str
    properties: dict[str, str]
    managed_versioning: bool | None = None
    table_uri: str | None = None
    storage_options: dict[str, str] | None = None
    table: str | None = None
    namespace: list[str] | None = None
    version: int | None = None
    schema: dict[str, Any] | None = None
    stats: dict[str, int] | None = None
    metadata: dict[str, str] | None = None
    is_only_declared: bool | None = None


class RenamedTable(msgspec.Struct):
    transaction_id: str


class Tables(msgspec.Struct, omit_defaults=True):
    tables: list[str]
    page_token: str | None = None


_declare = msgspec.json.Decoder(DeclareTable)
_register = msgspec.json.Decoder(RegisterTable)
_describe = msgspec.json.Decoder(DescribeTable)
_exists = msgspec.json.Decoder(TableExists)
_rename = msgspec.json.Decoder(RenameTable)
_body = msgspec.json.Decoder(Body)


async def list_names(call: Call) -> Tables:
    page = call.page(f"tables:{to_path(call.id)}")
    declared = call.flag("include_declared") is not False
    found = await table_listing.list_names(call.catalog, call.id, page, declared, call.only)
    return Tables(found.items, found.token)


async def list_all(call: Call) -> Tables:
    page = call.page("tables")
    declared = call.flag("include_declared") is not False
    found = await table_listing.list_all(call.catalog, page, declared, call.only)
    return Tables([call.delimiter.join(id) for id in found.items], found.token)


async def declare(call: Call) -> DeclaredTable | Reply:
    body = call.decode(_declare)
    catalog = call.catalog
    new = tables.plan_table(
        catalog, call.id, body.location, body.properties or {}, catalog.managed_versions
    )
    transaction = await tables.declare(catalog, new, call.origin)
    reply = declared_table(call, new.table, transaction, body.vend_credentials)
    if body.vend_credentials:
        reply.storage_options = await _storage_options(call, new.table, True)
        if catalog.vendor is not None:
            return Reply(200, msgspec.json.encode(reply), headers=NOT_STORED)
    return reply


async def register(call: Call) -> DeclaredTable:
    body = call.decode(_register)
    mode = choose("mode", body.mode, ("create", "overwrite"))
    new = tables.plan_table(
        call.catalog, call.id, body.location, body.properties or {}, managed=False
    )
    transaction = await table_changes.register(call.catalog, new, mode, call.origin)
    return DeclaredTable(new.table.location, new.table.properties, transaction_id=transaction)


async def describe(call: Call) -> DescribedTable:
    body = call.decode(_describe)
    catalog = call.catalog
    if body.tag is not None and (body.version is not None or body.branch is not None):
        raise InvalidRequest(
            "tag cannot be used together with version or branch", detail="send only one of them"
        )
    try:
        table = await tables.get(catalog.database, call.id)
    except NotALanceTable as error:
        raise TableNotFound(error.message, detail=error.detail) from error
    except ViewIsNoTable as error:
        # Its client opens whatever it reads as a table, and reads it by our routes.
        if LANCEDB_HEADER in call.headers.values:
            return await _describe_view(call, body)
        raise TableNotFound(error.message, detail=error.detail) from error
    reply = DescribedTable(table.location, table.properties, table.managed or None)
    if call.flag("with_table_uri") or body.with_table_uri:
        reply.table_uri = catalog.lake.place(table.location).uri
    if body.vend_credentials is not False:
        reply.storage_options = await _storage_options(call, table, body.vend_credentials)
    detailed = call.flag("load_detailed_metadata") or body.load_detailed_metadata
    # lancedb's remote client reads version and schema, in Lance's words, from every description.
    detailed = detailed or (detailed is None and LANCEDB_HEADER in call.headers.values)
    chosen = any(part is not None for part in (body.version, body.tag, body.branch))
    if detailed or call.flag("check_declared") or body.check_declared:
        reply.is_only_declared = not await tables.has_data(catalog, table)
    if detailed and reply.is_only_declared and not chosen:
        reply.table, reply.namespace = table.name, list(table.namespace)
    elif detailed or chosen:
        branch, found = await _find_version(call, table, body)
        reply.version = found.version
        if detailed:
            reply.table, reply.namespace = table.name, list(table.namespace)
            await _load_details(call, table, branch, found, reply)
    if table.is_view:
        view = await materialized_views.load(catalog.database, table)
        told = await view_description.describe(catalog, view, call.origin)
        reply.properties = {**table.properties, **told}
    if detailed and (kept := await policies.find(catalog.database, table.id)) is not None:
        shown = msgspec.json.encode(upkeep_policies.show(kept)).decode()
        reply.properties = {**reply.properties, UPKEEP_PROPERTY: shown}
    if table.has_bound_columns:
        counted = bool(call.flag("count_rows") or body.count_rows)
        await _tell_bound(call, table, check_branch(body.branch), reply, counted)
    return reply


async def _describe_view(call: Call, body: DescribeTable) -> DescribedTable:
    view_rows.check_newest(call, check_branch(body.branch), body.version)
    shown = await iceberg_views.describe_newest(call, in_lance_words=True)
    return DescribedTable(
        location=shown.location,
        properties=shown.properties,
        table=shown.name,
        namespace=shown.namespace,
        version=shown.version,
        schema=shown.schema,
    )


async def exists(call: Call) -> None:
    body = call.decode(_exists)
    try:
        table = await tables.get(call.catalog.database, call.id)
    except (ViewIsNoTable, NotALanceTable) as error:
        raise TableNotFound(error.message, detail=error.detail) from error
    if body.version is not None or body.branch is not None:
        branch = check_branch(body.branch)
        await reconcile.get_version_of_branch(call.catalog, table, branch, body.version)


async def drop(call: Call) -> RemovedTable:
    call.decode(_body)
    table, transaction = await table_changes.drop(
        call.catalog, call.id, call.origin, call.allowance()
    )
    return removed_table(table, transaction)


async def deregister(call: Call) -> RemovedTable:
    call.decode(_body)
    table, transaction = await table_changes.deregister(
        call.catalog, call.id, call.origin, call.allowance()
    )
    return removed_table(table, transaction)


async def rename(call: Call) -> RenamedTable:
    body = call.decode(_rename)
    check_name(body.new_table_name, "new_table_name")
    namespace = call.id[:-1] if body.new_namespace_id is None else tuple(body.new_namespace_id)
    new = check_identifier((*namespace, body.new_table_name), "the new id")
    try:
        done = await renames.rename(call.catalog, call.id, new, call.origin, call.allowance())
    except ViewIsNoTable:
        done = await renames.rename_view(call.catalog, call.id, new, call.origin, call.allowance())
    return RenamedTable(done)


async def _storage_options(call: Call, table: Table, vend: bool | None) -> dict[str, str] | None:
    """The storage options for a client: no secrets but credentials for that table."""
    lake, vendor = call.catalog.lake, call.catalog.vendor
    options = lake.public_options()
    if vendor is not None:
        try:
            options |= await lake.run(vendor.vend, table.location, call.may_write)
        except Unavailable as error:
            # A client with its own credentials does not need ours.
            if vend:
                raise
            log.warning("%s", error.message)
    return options or None


def declared_table(
    call: Call, table: Table, transaction: str, vend_credentials: bool | None
) -> DeclaredTable:
    options = None if vend_credentials is False else call.catalog.lake.public_options() or None
    return DeclaredTable(
        table.location, table.properties, table.managed or None, options, transaction
    )


def removed_table(table: Table, transaction: str) -> RemovedTable:
    return RemovedTable(list(table.identifier), table.location, table.properties, transaction)


async def _find_version(call: Call, table: Table, body: DescribeTable) -> tuple[str, TableVersion]:
    """The requested branch and version, which must exist."""
    catalog, branch, version = call.catalog, check_branch(body.branch), body.version
    if body.tag is not None:
        place = catalog.lake.place(table.location)
        branch, version = await catalog.lake.run(details.read_tag, place, check_tag(body.tag))
    found = await reconcile.get_version_of_branch(catalog, table, branch, version)
    return branch, found


async def _tell_bound(
    call: Call, table: Table, branch: str, reply: DescribedTable, counted: bool
) -> None:
    if found := await computed_columns.describe(call.catalog, table, branch):
        if counted:
            found = await backfills.count_rows(call.catalog, table, branch, found)
        text = msgspec.json.encode(found).decode()
        reply.properties = {**reply.properties, BOUND_PROPERTY: text}


async def _load_details(
    call: Call, table: Table, branch: str, version: TableVersion, reply: DescribedTable
) -> None:
    lake = call.catalog.lake
    found = await lake.run(
        details.load_details,
        lake.place(table.location),
        lake.options,
        branch,
        version,
        in_lance_words=LANCEDB_HEADER in call.headers.values,
    )
    reply.schema, reply.stats, reply.metadata = found.schema, found.stats, found.metadata
