"""The routes of Iceberg tables."""

import hashlib
from typing import Any

import msgspec

from penstock.catalog.iceberg_tables import (
    commits,
    creation,
    drops,
    iceberg_tables,
    metadata_files,
)
from penstock.catalog.iceberg_tables.commits import TableCommit
from penstock.iceberg.doors import table_requests
from penstock.model.identifiers import Identifier, check_identifier, to_path
from penstock.server.iceberg.call import Call, any_object, renaming
from penstock.server.iceberg.replies import done, json_reply, metadata_reply
from penstock.server.iceberg.table_replies import committed_reply, table_reply
from penstock.server.transport.http import Reply

Json = dict[str, Any]


async def list_names(call: Call) -> Reply:
    page = call.page(f"iceberg:tables:{to_path(call.namespace)}")
    found = await call.catalog.database.read(
        iceberg_tables.list_names, call.namespace, page, call.only
    )
    names = [{"namespace": call.namespace, "name": name} for name in found.items]
    return json_reply({"identifiers": names, "next-page-token": found.token})


async def exists(call: Call) -> Reply:
    await iceberg_tables.get(call.catalog.database, call.id)
    return done()


async def create(call: Call) -> Reply:
    """Make a table, or prepare one for a commit that will make it."""
    body = call.decode(any_object)
    request = await call.catalog.lake.run(_read_create, body)
    id = check_identifier((*call.namespace, request.name), "name")
    loaded = await creation.create(call.catalog, id, request, call.origin)
    # Who makes a table owns it.
    call.may_write = True
    return await table_reply(call, loaded)


async def commit(call: Call) -> Reply:
    body = call.decode(any_object)
    request = await call.catalog.lake.run(_read_commit, call, body)
    (loaded,) = await commits.commit(call.catalog, [to_commit(call.id, request, body)], call.origin)
    return committed_reply(loaded)


async def commit_all(call: Call) -> Reply:
    """Commit to several tables at once."""
    body = call.decode(any_object)
    requests = await call.catalog.lake.run(_read_transaction, body)
    asked = []
    for number, (request, given) in enumerate(zip(requests, body["table-changes"], strict=True)):
        assert request.identifier is not None
        namespace, name = request.identifier
        id = check_identifier((*namespace, name), f"table-changes[{number}].identifier")
        asked.append(to_commit(id, request, given))
    await commits.commit(call.catalog, asked, call.origin)
    return done()


async def register(call: Call) -> Reply:
    body = call.decode(any_object)
    request = await call.catalog.lake.run(_read_register, body)
    id = check_identifier((*call.namespace, request.name), "name")
    loaded = await creation.register(call.catalog, id, request, call.origin)
    call.may_write = True
    return await table_reply(call, loaded)


async def drop(call: Call) -> Reply:
    purge = call.choose("purgeRequested", ("false", "true")) == "true"
    await drops.drop(call.catalog, call.id, purge=purge, origin=call.origin)
    return done()


async def unregister(call: Call) -> Reply:
    loaded = await drops.unregister(call.catalog, call.id, call.origin)
    assert loaded.record is not None
    location = loaded.record.metadata_location
    return metadata_reply(location, loaded.text, b"", accepts_gzip=False)


async def tell_unregistered(call: Call, notes: Json) -> Reply:
    """The answer of a table that was unregistered, from its file."""
    location = notes["metadata-location"]
    text = await call.catalog.lake.run(
        metadata_files.read_text, call.catalog.lake, notes["folder"], location, notes["uuid"]
    )
    return metadata_reply(location, text, b"", accepts_gzip=False)


async def rename(call: Call) -> Reply:
    body = call.decode(renaming)
    source = body.source.to_identifier("source")
    destination = body.destination.to_identifier("destination")
    await iceberg_tables.rename(call.catalog, source, destination, call.origin)
    return done()


async def report(call: Call) -> Reply:
    """Accept a report of a scan or a commit, which is not kept."""
    call.decode(any_object)
    await iceberg_tables.get(call.catalog.database, call.id)
    return done()


def to_commit(id: Identifier, request: "table_requests.CommitTable", given: Json) -> TableCommit:
    """A commit, with what it is recognised by when it comes again."""
    meant = {"id": id, **{key: given.get(key) for key in ("requirements", "updates")}}
    digest = hashlib.sha256(msgspec.json.encode(meant, order="sorted")).hexdigest()
    added = [each["snapshot"] for each in given["updates"] if each["action"] == "add-snapshot"]
    return TableCommit(id, request, digest, tuple(added))


# Called in a thread: what reads requests loads pyiceberg, which loading tables never needs.


def _read_create(body: Json) -> "table_requests.CreateTable":
    return table_requests.read_create(body)


def _read_commit(call: Call, body: Json) -> "table_requests.CommitTable":
    request = table_requests.read_commit(body)
    table_requests.check_target(request, call.namespace, call.name)
    return request


def _read_transaction(body: Json) -> "tuple[table_requests.CommitTable, ...]":
    return table_requests.read_transaction(body)


def _read_register(body: Json) -> "table_requests.RegisterTable":
    return table_requests.read_register(body)
