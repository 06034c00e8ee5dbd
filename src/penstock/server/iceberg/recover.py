"""Answers for effects whose own answer was lost with the server that had it."""

from penstock.catalog.names.idempotency import Used
from penstock.server.iceberg import namespaces, views
from penstock.server.iceberg.call import Call, any_object
from penstock.server.iceberg.replies import done
from penstock.server.transport.http import Reply


async def nothing(call: Call, used: Used) -> Reply:
    """For a route that answers nothing."""
    return done()


async def loaded_view(call: Call, used: Used) -> Reply:
    """The view as it is now, which may be newer."""
    return await views.load_plain(call)


async def made_view(call: Call, used: Used) -> Reply:
    call.name = call.decode(any_object)["name"]
    return await views.load_plain(call)


async def made_namespace(call: Call, used: Used) -> Reply:
    call.namespace = tuple(call.decode(any_object)["namespace"])
    return await namespaces.load(call)


async def updated_properties(call: Call, used: Used) -> Reply:
    return namespaces.updated(call, set(used.notes["missing"]))
