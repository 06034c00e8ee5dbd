"""Operations on environments of jobs, stored by name: create, describe, list, drop."""

from typing import Any

import msgspec

from penstock.catalog.jobs import environments as manifests
from penstock.catalog.jobs.environments import NamedManifest
from penstock.errors import InvalidRequest
from penstock.server.lance.call import Body, Call, choose


class CreateManifest(Body):
    """`manifest` is JSON text, or the object itself."""

    manifest: Any = None
    mode: str | None = None


class DescribedManifest(msgspec.Struct):
    name: str
    manifest: str
    checksum: str
    created_at: int


class Manifests(msgspec.Struct, omit_defaults=True):
    manifests: list[DescribedManifest]
    page_token: str | None = None


_create = msgspec.json.Decoder(CreateManifest)
_body = msgspec.json.Decoder(Body)


async def create(call: Call) -> DescribedManifest:
    body = call.decode(_create)
    mode = choose("mode", body.mode, ("create", "overwrite"))
    given = body.manifest
    if isinstance(given, dict):
        given = msgspec.json.encode(given).decode()
    if not isinstance(given, str) or "\0" in given:
        raise InvalidRequest("manifest is missing", detail="send it as JSON text or as an object")
    made = await manifests.create(
        call.catalog, _name(call), given, overwrite=mode == "overwrite", origin=call.origin
    )
    return _to_described(made)


async def describe(call: Call) -> DescribedManifest:
    call.decode(_body)
    return _to_described(await manifests.get(call.catalog.database, _name(call)))


async def drop(call: Call) -> DescribedManifest:
    call.decode(_body)
    return _to_described(await manifests.drop(call.catalog, _name(call), call.origin))


async def list_manifests(call: Call) -> Manifests:
    found = await manifests.list_manifests(call.catalog, call.page("manifests"))
    return Manifests([_to_described(each) for each in found.items], found.token)


def _name(call: Call) -> str:
    if len(call.id) != 1:
        raise InvalidRequest(
            "the id is not the name of a manifest", detail="a manifest's name has one part"
        )
    return call.id[0]


def _to_described(manifest: NamedManifest) -> DescribedManifest:
    return DescribedManifest(
        manifest.name, manifest.content, manifest.checksum, manifest.created_at
    )
