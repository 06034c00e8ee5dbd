"""Routes of Iceberg tables, which clients of views call on the way: there are no tables here."""

import msgspec

from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.names import namespaces, tables
from penstock.errors import TableAlreadyExists, TableNotFound, Unsupported
from penstock.model.identifiers import Identifier, check_identifier
from penstock.server.iceberg.call import Call, renaming
from penstock.server.iceberg.replies import json_reply
from penstock.server.transport.http import Reply


class NewTable(msgspec.Struct):
    name: str


_new = msgspec.json.Decoder(NewTable)


async def list_names(call: Call) -> Reply:
    await namespaces.get(call.catalog.database, call.namespace)
    return json_reply({"identifiers": [], "next-page-token": None})


async def find(call: Call) -> Reply:
    """Any call about one table: it does not exist, whatever else has that name."""
    raise _missing(call.id)


async def create(call: Call) -> Reply:
    """Create or register a table: refused, with a conflict when the name is taken."""
    id = check_identifier((*call.namespace, call.decode(_new).name))
    await namespaces.get(call.catalog.database, call.namespace)
    kind = await tables.find_kind(call.catalog.database, id)
    if kind == iceberg_views.KIND:
        raise TableAlreadyExists(f"View with same name already exists: {'.'.join(id)}")
    if kind is not None:
        raise TableAlreadyExists(f"Table already exists: {'.'.join(id)}")
    raise Unsupported(
        "Iceberg tables are not served here", detail="this catalog keeps Lance tables and views"
    )


async def rename(call: Call) -> Reply:
    body = call.decode(renaming)
    body.destination.to_identifier("destination")
    raise _missing(body.source.to_identifier("source"))


def _missing(id: Identifier) -> TableNotFound:
    return TableNotFound(f"table {'.'.join(id)} does not exist", subject=id)
