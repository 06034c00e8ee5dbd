"""Answers with Iceberg tables, and the routes that only read them."""

from typing import Any

import msgspec

from penstock.catalog.iceberg_tables import credentials, iceberg_tables, metadata_files
from penstock.catalog.iceberg_tables.creation import LoadedTable
from penstock.catalog.iceberg_tables.credentials import StorageAccess
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.iceberg.doors import table_loading
from penstock.server.iceberg.call import Call
from penstock.server.iceberg.replies import json_reply, metadata_reply
from penstock.server.transport.http import NOT_STORED, Reply, accepts

DELEGATION = "x-iceberg-access-delegation"
VENDED = "vended-credentials"
ALL, REFS = "all", "refs"
# Encoding or compressing more than this would make other requests wait.
LARGE_TEXT = 256 * 1024

_encode = msgspec.json.Encoder().encode


async def load(call: Call) -> Reply:
    """The table; 304 without a body when the client has it as it is."""
    shown = call.choose("snapshots", (ALL, REFS))
    table = await iceberg_tables.get(call.catalog.database, call.id)
    if _wants_access(call):
        access = await credentials.find_access(
            call.catalog, table.location, may_write=call.may_write
        )
        if access.config or access.credentials:
            return await _load_with(call, table, shown, access)
    metadata_files.check_there(call.catalog.lake, table)
    tag = table_loading.etag(table.metadata_location, shown)
    if _has_tag(call.headers.values.get("if-none-match", ""), tag):
        return Reply(304, headers=_tagged(tag))
    accepts_gzip = _accepts_gzip(call)
    found = call.loaded.find((*table.state, shown, accepts_gzip))
    if found is not None:
        return found
    table, text = await metadata_files.load(call.catalog, table)
    tag = table_loading.etag(table.metadata_location, shown)
    work = call.catalog.lake.run if len(text) > LARGE_TEXT else _at_once
    reply = await work(
        _make_reply, table.metadata_location, text, shown, b',"config":{}', accepts_gzip, tag
    )
    return call.loaded.keep((*table.state, shown, accepts_gzip), reply)


async def load_credentials(call: Call) -> Reply:
    """Credentials for the table's files; none where this server gives out none."""
    table = await iceberg_tables.get(call.catalog.database, call.id)
    access = await credentials.find_access(
        call.catalog, table.location, may_write=call.may_write, is_needed=True
    )
    reply = json_reply({"storage-credentials": _tell_credentials(access)})
    return Reply(200, reply.body, headers=NOT_STORED)


async def table_reply(call: Call, loaded: LoadedTable) -> Reply:
    """The answer with a new table; uncompressed, so that it can be stored under a key."""
    record = loaded.record
    location = None if record is None else record.metadata_location
    if _wants_access(call):
        place = call.catalog.lake.accept(loaded.location) if record is None else record.location
        access = await credentials.find_access(call.catalog, place, may_write=call.may_write)
        more = _tell_access(access)
        reply = metadata_reply(location, loaded.text, more, accepts_gzip=False)
        return Reply(200, reply.body, headers=NOT_STORED) if access.is_secret else reply
    headers = () if location is None else _tagged(table_loading.etag(location, ALL))
    return metadata_reply(location, loaded.text, accepts_gzip=False, headers=headers)


async def load_plain(call: Call) -> Reply:
    """The table in the form that making it answers, without credentials."""
    table = await iceberg_tables.get(call.catalog.database, call.id)
    table, text = await metadata_files.load(call.catalog, table)
    return metadata_reply(table.metadata_location, text, accepts_gzip=False)


async def load_committed(call: Call) -> Reply:
    """The table in the form that a commit answers."""
    table = await iceberg_tables.get(call.catalog.database, call.id)
    table, text = await metadata_files.load(call.catalog, table)
    return committed_reply(LoadedTable(table, text, table.location))


def committed_reply(loaded: LoadedTable) -> Reply:
    """The answer to a commit."""
    assert loaded.record is not None
    location = loaded.record.metadata_location
    tag = _tagged(table_loading.etag(location, ALL))
    return metadata_reply(location, loaded.text, b"", accepts_gzip=False, headers=tag)


async def _load_with(call: Call, table: IcebergTable, shown: str, access: StorageAccess) -> Reply:
    """An answer of this caller's own: never kept, and never 304, because credentials end."""
    table, text = await metadata_files.load(call.catalog, table)
    reply = await call.catalog.lake.run(
        _make_reply,
        table.metadata_location,
        text,
        shown,
        _tell_access(access),
        _accepts_gzip(call),
        "",
    )
    return Reply(200, reply.body, headers=(*NOT_STORED, *reply.headers))


def _make_reply(
    location: str, text: bytes, shown: str, more: bytes, accepts_gzip: bool, tag: str
) -> Reply:
    if shown == REFS:
        text = _encode(table_loading.refs_only(msgspec.json.decode(text)))
    return metadata_reply(
        location, text, more, accepts_gzip=accepts_gzip, headers=_tagged(tag) if tag else ()
    )


async def _at_once(work: Any, *args: Any) -> Reply:
    reply: Reply = work(*args)
    return reply


def _wants_access(call: Call) -> bool:
    asked = call.headers.values.get(DELEGATION, "").split(",")
    return VENDED in (each.strip().lower() for each in asked)


def _accepts_gzip(call: Call) -> bool:
    return accepts(call.headers.values.get("accept-encoding", ""), "gzip")


def _tell_access(access: StorageAccess) -> bytes:
    """Older clients look for credentials in the configuration."""
    told: dict[str, Any] = {"config": access.config | access.credentials}
    if access.credentials:
        told["storage-credentials"] = _tell_credentials(access)
    return b"," + _encode(told)[1:-1]


def _tell_credentials(access: StorageAccess) -> list[dict[str, Any]]:
    if not access.credentials:
        return []
    return [{"prefix": access.prefix, "config": access.credentials}]


def _has_tag(given: str, tag: str) -> bool:
    return any(each.strip().removeprefix("W/") in (tag, "*") for each in given.split(","))


def _tagged(tag: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"etag", tag.encode()),)
