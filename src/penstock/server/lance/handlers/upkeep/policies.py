"""Operations on the policies by which servers keep tables small."""

import msgspec

from penstock.catalog.names import tables
from penstock.catalog.names.idempotency import KeyRecord
from penstock.catalog.upkeep import policies
from penstock.catalog.upkeep.policies import (
    Age,
    KeptPolicy,
    Policy,
    Run,
    Share,
    SmallFragments,
    Versions,
)
from penstock.lance.upkeep.compaction import DELETED_SHARE
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.refs import EmptyReply
from penstock.server.transport.http import Reply


class SetUpkeep(Body):
    compact: bool = True
    small_fragments: SmallFragments = 20
    deleted_share: Share = DELETED_SHARE
    older_than_seconds: Age | None = None
    keep_versions: Versions | None = None


class ShownPolicy(msgspec.Struct):
    """A table's policy, and how it goes; null where there is none."""

    policy: Policy | None
    due_at_millis: int | None = None
    ran_at_millis: int | None = None
    result: Run | None = None
    error: str | None = None
    failures: int = 0


_body = msgspec.json.Decoder(Body)
_set = msgspec.json.Decoder(SetUpkeep)


async def describe(call: Call) -> ShownPolicy:
    call.decode(_body)
    table = await tables.get(call.catalog.database, call.id)
    return show(await policies.find(call.catalog.database, table.id))


async def put(call: Call) -> ShownPolicy:
    body = call.decode(_set)
    policy = policies.check(
        Policy(
            compact=body.compact,
            small_fragments=body.small_fragments,
            deleted_share=body.deleted_share,
            older_than_seconds=body.older_than_seconds,
            keep_versions=body.keep_versions,
        )
    )
    table = await tables.get(call.catalog.database, call.id)
    await policies.put(call.catalog, table, policy, call.origin)
    return show(await policies.find(call.catalog.database, table.id))


async def recover_put(call: Call, used: KeyRecord) -> Reply:
    return Reply(200, msgspec.json.encode(await describe(call)))


async def end(call: Call) -> EmptyReply:
    call.decode(_body)
    table = await tables.get(call.catalog.database, call.id)
    await policies.end(call.catalog, table, call.origin)
    return EmptyReply()


def show(kept: KeptPolicy | None) -> ShownPolicy:
    if kept is None:
        return ShownPolicy(None)
    has_run = kept.ran_at is not None
    return ShownPolicy(
        kept.policy,
        kept.due_at,
        kept.ran_at,
        kept.result if has_run else None,
        kept.error or None,
        kept.failures,
    )
