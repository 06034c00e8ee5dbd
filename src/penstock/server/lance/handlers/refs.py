"""Operations on tags and branches, and restoring an old version."""

import msgspec

from penstock.catalog.columns import computed_columns
from penstock.catalog.names import tables
from penstock.catalog.versions import refs
from penstock.lance.refs import check_new_branch, check_new_tag
from penstock.model.branches import check_branch, check_tag
from penstock.server.lance.call import Body, Call, Version
from penstock.server.transport.http import Reply


class NamedTag(Body):
    tag: str


class PointTag(Body):
    tag: str
    version: Version
    branch: str | None = None


class CreateBranch(Body):
    name: str
    from_branch: str | None = None
    from_version: Version | None = None


class DeleteBranch(Body):
    name: str


class RestoreTable(Body):
    version: Version
    branch: str | None = None


class TagContents(msgspec.Struct, omit_defaults=True, rename="camel"):
    version: int
    manifest_size: int
    branch: str | None = None


class Tags(msgspec.Struct, omit_defaults=True):
    tags: dict[str, TagContents]
    page_token: str | None = None


class TagVersion(msgspec.Struct, omit_defaults=True):
    version: int
    branch: str | None = None


class BranchContents(msgspec.Struct, omit_defaults=True, rename="camel"):
    parent_version: int
    create_at: int
    manifest_size: int
    parent_branch: str | None = None
    metadata: dict[str, str] | None = None


class Branches(msgspec.Struct, omit_defaults=True):
    branches: dict[str, BranchContents]
    page_token: str | None = None


class EmptyReply(msgspec.Struct, omit_defaults=True):
    """The answer to a change without a result."""

    transaction_id: str | None = None


_body = msgspec.json.Decoder(Body)
_named = msgspec.json.Decoder(NamedTag)
_point = msgspec.json.Decoder(PointTag)
_create = msgspec.json.Decoder(CreateBranch)
_delete = msgspec.json.Decoder(DeleteBranch)
_restore = msgspec.json.Decoder(RestoreTable)


async def list_tags(call: Call) -> Tags | Reply:
    call.decode(_body)
    table = await tables.get(call.catalog.database, call.id)
    found = await refs.list_tags(call.catalog, table, call.page(f"tags:{table.id}"))
    tags = {n: TagContents(t.version, t.manifest_size, t.branch or None) for n, t in found.items}
    if call.is_from_lancedb:
        return Reply(200, msgspec.json.encode(tags))
    return Tags(tags, found.token)


async def get_tag(call: Call) -> TagVersion:
    body = call.decode(_named)
    table = await tables.get(call.catalog.database, call.id)
    found = await refs.get_tag(call.catalog, table, check_tag(body.tag))
    return TagVersion(found.version, found.branch or None)


async def create_tag(call: Call) -> EmptyReply:
    body = call.decode(_point)
    name, branch = check_new_tag(body.tag), check_branch(body.branch)
    table = await tables.get(call.catalog.database, call.id)
    return EmptyReply(
        await refs.create_tag(call.catalog, table, name, branch, body.version, call.origin)
    )


async def update_tag(call: Call) -> EmptyReply:
    body = call.decode(_point)
    name, branch = check_tag(body.tag), check_branch(body.branch)
    table = await tables.get(call.catalog.database, call.id)
    return EmptyReply(
        await refs.update_tag(call.catalog, table, name, branch, body.version, call.origin)
    )


async def names(call: Call, version: int, branch: str | None) -> bool:
    """Whether the call's tag names this version now."""
    found = await get_tag(call)
    return (found.version, found.branch) == (version, branch)


async def delete_tag(call: Call) -> EmptyReply:
    body = call.decode(_named)
    table = await tables.get(call.catalog.database, call.id)
    return EmptyReply(await refs.delete_tag(call.catalog, table, check_tag(body.tag), call.origin))


async def list_branches(call: Call) -> Branches:
    call.decode(_body)
    table = await tables.get(call.catalog.database, call.id)
    found = await refs.list_branches(call.catalog, table, call.page(f"branches:{table.id}"))
    branches = {
        name: BranchContents(
            b.parent_version,
            b.create_at,
            b.manifest_size,
            b.parent_branch or None,
            b.metadata or None,
        )
        for name, b in found.items
    }
    return Branches(branches, found.token)


async def create_branch(call: Call) -> EmptyReply:
    body = call.decode(_create)
    name, source = check_new_branch(body.name), check_branch(body.from_branch)
    table = await tables.get(call.catalog.database, call.id)
    transaction = await refs.create_branch(
        call.catalog, table, name, source, body.from_version, call.origin
    )
    if table.has_bound_columns:
        await computed_columns.mirror(call.catalog, table, name)
    return EmptyReply(transaction)


async def delete_branch(call: Call) -> EmptyReply:
    body = call.decode(_delete)
    name = check_new_branch(body.name)
    table = await tables.get(call.catalog.database, call.id)
    return EmptyReply(await refs.delete_branch(call.catalog, table, name, call.origin))


async def restore(call: Call) -> EmptyReply:
    body = call.decode(_restore)
    catalog, branch = call.catalog, check_branch(body.branch)
    table = tables.check_rows(await tables.get(catalog.database, call.id))
    version = await refs.restore(catalog, table, branch, body.version, call.origin)
    await computed_columns.mirror(catalog, table, branch)
    return EmptyReply(await refs.find_transaction(catalog, table, branch, version))
