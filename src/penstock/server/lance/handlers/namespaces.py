"""The operations on namespaces."""

import msgspec

from penstock.catalog.names import namespace_changes, namespaces
from penstock.model.identifiers import to_path
from penstock.server.lance.call import Body, Call, choose


class CreateNamespace(Body):
    mode: str | None = None
    properties: dict[str, str] | None = None


class DropNamespace(Body):
    mode: str | None = None
    behavior: str | None = None


class Properties(msgspec.Struct, omit_defaults=True):
    properties: dict[str, str]
    transaction_id: str | None = None


class Namespaces(msgspec.Struct, omit_defaults=True):
    namespaces: list[str]
    page_token: str | None = None


_create = msgspec.json.Decoder(CreateNamespace)
_drop = msgspec.json.Decoder(DropNamespace)
_body = msgspec.json.Decoder(Body)


async def create(call: Call) -> Properties:
    body = call.decode(_create)
    mode = choose("mode", body.mode, ("create", "exist_ok", "overwrite"))
    made = await namespaces.create(call.catalog, call.id, body.properties or {}, mode, call.origin)
    return Properties(made.properties, made.transaction_id)


async def list_children(call: Call) -> Namespaces:
    page = call.page(f"namespaces:{to_path(call.id)}")
    found = await call.catalog.database.read(namespaces.list_children, call.id, page, call.only)
    return Namespaces(found.items, found.token)


async def describe(call: Call) -> Properties:
    call.decode(_body)
    return Properties(await namespaces.get(call.catalog.database, call.id))


async def drop(call: Call) -> Properties:
    body = call.decode(_drop)
    mode = choose("mode", body.mode, ("fail", "skip"))
    behavior = choose("behavior", body.behavior, ("restrict", "cascade"))
    properties = await namespace_changes.drop(
        call.catalog, call.id, mode, behavior, call.origin, call.allowance()
    )
    return Properties(properties)


async def exists(call: Call) -> None:
    call.decode(_body)
    await namespaces.get(call.catalog.database, call.id)
