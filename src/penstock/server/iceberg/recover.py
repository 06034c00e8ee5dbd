"""Answers for effects whose own answer was lost with the server that had it."""

import msgspec

from penstock.catalog import transactions
from penstock.server.http import Reply
from penstock.server.iceberg import namespaces, views
from penstock.server.iceberg.call import Call, any_object
from penstock.server.iceberg.replies import done


async def recover(route: str, call: Call, transaction_id: str) -> Reply:
    """The answer to a call whose effect is known to have taken place; it may tell newer state."""
    match route:
        case "ReplaceView":
            return await views.load(call)
        case "CreateView" | "RegisterView":
            call.name = call.decode(any_object)["name"]
            return await views.load(call)
        case "CreateNamespace":
            call.namespace = tuple(call.decode(any_object)["namespace"])
            return await namespaces.load(call)
        case "UpdateProperties":
            known = await transactions.get(call.catalog.database, transaction_id)
            missing = msgspec.json.decode(known.properties["missing"], type=list[str])
            return namespaces.updated(call, missing)
        case _:
            return done()
