"""The routes of namespaces; the Lance protocol shows the same ones."""

from collections.abc import Collection

import msgspec

from penstock.catalog.iceberg_views.metadata_files import spell
from penstock.catalog.names import namespaces
from penstock.errors import InvalidRequest, Unprocessable
from penstock.model.identifiers import ROOT, to_path
from penstock.server.iceberg.call import Call, check_namespace, split_namespace
from penstock.server.iceberg.replies import done, json_reply
from penstock.server.transport.http import Reply


class CreateNamespace(msgspec.Struct):
    namespace: list[str]
    properties: dict[str, str] | None = None


class UpdateProperties(msgspec.Struct):
    removals: list[str] | None = None
    updates: dict[str, str] | None = None


_create = msgspec.json.Decoder(CreateNamespace)
_update = msgspec.json.Decoder(UpdateProperties)


async def list_children(call: Call) -> Reply:
    text = call.text("parent")
    parent = split_namespace(text, "parent") if text else ROOT
    page = call.page(f"iceberg:namespaces:{to_path(parent)}")
    found = await call.catalog.database.read(namespaces.list_children, parent, page, call.only)
    paths = [[*parent, name] for name in found.items]
    return json_reply({"namespaces": paths, "next-page-token": found.token})


async def create(call: Call) -> Reply:
    body = call.decode(_create)
    id = check_namespace(body.namespace, "namespace")
    made = await namespaces.create(call.catalog, id, body.properties or {}, "create", call.origin)
    return json_reply({"namespace": id, "properties": made.properties})


async def load(call: Call) -> Reply:
    """The namespace, with the location below which its tables are made.

    Some engines choose the places of tables below it, and make none where it is not told.
    """
    properties = await namespaces.get(call.catalog.database, call.namespace)
    told = {"location": spell(call.catalog.lake.root), **properties}
    return json_reply({"namespace": call.namespace, "properties": told})


async def load_plain(call: Call) -> Reply:
    """The namespace in the form that making it answers."""
    properties = await namespaces.get(call.catalog.database, call.namespace)
    return json_reply({"namespace": call.namespace, "properties": properties})


async def exists(call: Call) -> Reply:
    await namespaces.get(call.catalog.database, call.namespace)
    return done()


async def drop(call: Call) -> Reply:
    await namespaces.drop(call.catalog, call.namespace, "fail", "restrict", call.origin)
    return done()


async def update_properties(call: Call) -> Reply:
    body = call.decode(_update)
    removals, updates = body.removals or [], body.updates or {}
    if len(set(removals)) < len(removals):
        raise InvalidRequest("removals names a key twice", detail="name each key once")
    if both := sorted(set(removals) & updates.keys()):
        raise Unprocessable(
            f"the key {both[0]!r} is in removals and in updates", detail="choose one of them"
        )
    missing = await namespaces.update_properties(
        call.catalog, call.namespace, removals, updates, call.origin
    )
    return updated(call, missing)


def updated(call: Call, missing: Collection[str]) -> Reply:
    """The answer to an update of properties; some of those to remove did not exist."""
    body = call.decode(_update)
    removals = body.removals or []
    return json_reply(
        {
            "updated": list(body.updates or {}),
            "removed": [key for key in removals if key not in missing],
            "missing": [key for key in removals if key in missing],
        }
    )
