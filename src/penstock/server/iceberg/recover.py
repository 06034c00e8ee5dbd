"""Rebuild answers that were lost with their server."""

from penstock.catalog.names.idempotency import KeyRecord
from penstock.server.iceberg import namespaces, table_replies, tables, views
from penstock.server.iceberg.call import Call, any_object
from penstock.server.iceberg.replies import done
from penstock.server.transport.http import Reply


async def nothing(call: Call, used: KeyRecord) -> Reply:
    """For a route without an answer."""
    return done()


async def loaded_view(call: Call, used: KeyRecord) -> Reply:
    """The view as it is now, which may be newer."""
    return await views.load_plain(call)


async def made_view(call: Call, used: KeyRecord) -> Reply:
    call.name = call.decode(any_object)["name"]
    return await views.load_plain(call)


async def committed_table(call: Call, used: KeyRecord) -> Reply:
    """The table as it is now, which may be newer."""
    return await table_replies.load_committed(call)


async def made_table(call: Call, used: KeyRecord) -> Reply:
    if call.decode(any_object).get("stage-create"):
        # Nothing was made, and what was told is told anew.
        return await tables.create(call)
    return await registered_table(call, used)


async def registered_table(call: Call, used: KeyRecord) -> Reply:
    call.name = call.decode(any_object)["name"]
    return await table_replies.load_plain(call)


async def unregistered_table(call: Call, used: KeyRecord) -> Reply:
    return await tables.tell_unregistered(call, used.notes)


async def made_namespace(call: Call, used: KeyRecord) -> Reply:
    call.namespace = tuple(call.decode(any_object)["namespace"])
    return await namespaces.load_plain(call)


async def updated_properties(call: Call, used: KeyRecord) -> Reply:
    return namespaces.updated(call, set(used.notes["missing"]))
