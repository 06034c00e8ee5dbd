"""Answers for effects whose own answer was lost with the server that had it."""

from penstock.catalog.idempotency import Used
from penstock.server.http import Reply
from penstock.server.iceberg import namespaces, views
from penstock.server.iceberg.call import Call, any_object
from penstock.server.iceberg.replies import done


async def recover(route: str, call: Call, used: Used) -> Reply:
    """The answer to a call whose effect is known to have taken place; it may tell newer state."""
    match route:
        case "ReplaceView":
            return await views.load_plain(call)
        case "CreateView" | "RegisterView":
            call.name = call.decode(any_object)["name"]
            return await views.load_plain(call)
        case "CreateNamespace":
            call.namespace = tuple(call.decode(any_object)["namespace"])
            return await namespaces.load(call)
        case "UpdateProperties":
            return namespaces.updated(call, set(used.notes["missing"]))
        case _:
            return done()
