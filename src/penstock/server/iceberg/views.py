"""The routes of views."""

from typing import Any

import msgspec

from penstock.catalog.iceberg_views import iceberg_views
from penstock.catalog.iceberg_views import replace as view_replacing
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.iceberg.doors import requests
from penstock.model.identifiers import check_identifier, to_path
from penstock.server.iceberg.call import Call, any_object, renaming
from penstock.server.iceberg.replies import done, json_reply, make_reply
from penstock.server.transport.http import Reply, accepts


class Register(msgspec.Struct, rename="kebab"):
    name: str
    metadata_location: str


# Compressing more than this would make other requests wait.
LARGE_TEXT = 256 * 1024

_register = msgspec.json.Decoder(Register)


async def list_names(call: Call) -> Reply:
    page = call.page(f"iceberg:views:{to_path(call.namespace)}")
    found = await call.catalog.database.read(
        iceberg_views.list_names, call.namespace, page, call.only
    )
    names = [{"namespace": call.namespace, "name": name} for name in found.items]
    return json_reply({"identifiers": names, "next-page-token": found.token})


async def load(call: Call) -> Reply:
    accepts_gzip = accepts(call.headers.values.get("accept-encoding", ""), "gzip")
    state = await iceberg_views.get_state(call.catalog.database, call.id)
    found = call.loaded.find((*state, "", accepts_gzip))
    if found is not None:
        return found
    view = await iceberg_views.get(call.catalog.database, call.id)
    if accepts_gzip and len(view.document.text) > LARGE_TEXT:
        reply = await call.catalog.lake.run(make_reply, view, accepts_gzip)
    else:
        reply = make_reply(view, accepts_gzip)
    return call.loaded.keep((*view.state, "", accepts_gzip), reply)


async def load_plain(call: Call) -> Reply:
    """The view in the form that a change answers."""
    return _changed(call, await iceberg_views.get(call.catalog.database, call.id))


async def exists(call: Call) -> Reply:
    await iceberg_views.get_state(call.catalog.database, call.id)
    return done()


async def create(call: Call) -> Reply:
    body = call.decode(any_object)
    request = await call.catalog.lake.run(_read_create, body)
    id = check_identifier((*call.namespace, request.name), "name")
    view = await iceberg_views.create(call.catalog, id, request, call.origin)
    return _changed(call, view)


async def replace(call: Call) -> Reply:
    body = call.decode(any_object)
    request = await call.catalog.lake.run(_read_replace, call, body)
    return _changed(call, await view_replacing.replace(call.catalog, call.id, request, call.origin))


async def register(call: Call) -> Reply:
    body = call.decode(_register)
    id = check_identifier((*call.namespace, body.name), "name")
    view = await iceberg_views.register(call.catalog, id, body.metadata_location, call.origin)
    return _changed(call, view)


async def drop(call: Call) -> Reply:
    await iceberg_views.drop(call.catalog, call.id, call.origin)
    return done()


async def rename(call: Call) -> Reply:
    body = call.decode(renaming)
    source = body.source.to_identifier("source")
    destination = body.destination.to_identifier("destination")
    await iceberg_views.rename(call.catalog, source, destination, call.origin)
    return done()


def _changed(call: Call, view: IcebergView) -> Reply:
    """A changed view in the form of a load; uncompressed, so that it can be stored under a key."""
    return call.loaded.keep((*view.state, "", False), make_reply(view, accepts_gzip=False))


def _read_create(body: dict[str, Any]) -> "requests.CreateView":
    # Imported here, in a thread: it loads pyiceberg, which reading never needs.
    return requests.read_create(body)


def _read_replace(call: Call, body: dict[str, Any]) -> "requests.ReplaceView":
    request = requests.read_replace(body)
    requests.check_target(request, call.namespace, call.name)
    return request
