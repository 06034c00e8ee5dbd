"""Operations that keep a table small: compaction, and removal of old versions."""

from typing import Annotated

import msgspec

from penstock.catalog.names import tables
from penstock.catalog.upkeep import compactions, removals
from penstock.catalog.upkeep.plans import Retention
from penstock.model.branches import check_branch
from penstock.server.lance.call import Body, Call

DAY = 86_400
# A request that goes on for longer would look like a server that is gone.
Seconds = Annotated[float, msgspec.Meta(gt=0, le=60)]
Age = Annotated[int, msgspec.Meta(ge=0, le=100 * 366 * DAY)]
Versions = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]


class CompactTable(Body):
    branch: str | None = None
    # When it begins no piece any more; what is left is for the next request.
    seconds: Seconds = 20


class CleanUpTable(Body):
    branch: str | None = None
    # Versions stay for so long after they were replaced, and the newest so many in any case.
    older_than_seconds: Age = 7 * DAY
    keep_versions: Versions = 1
    dry_run: bool = False


class CompactedTable(msgspec.Struct):
    version: int
    fragments_removed: int
    fragments_added: int
    pieces_lost: int
    pieces_left: int


class CleanedTable(msgspec.Struct):
    version: int
    versions_removed: int
    files_removed: int
    bytes_removed: int
    versions_left: int
    versions_kept: dict[str, int]


_compact = msgspec.json.Decoder(CompactTable)
_clean_up = msgspec.json.Decoder(CleanUpTable)


async def compact(call: Call) -> CompactedTable:
    body = call.decode(_compact)
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    done = await compactions.compact(call.catalog, table, branch, body.seconds, call.origin)
    return msgspec.convert(done, CompactedTable, from_attributes=True)


async def clean_up(call: Call) -> CleanedTable:
    body = call.decode(_clean_up)
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    retention = Retention(body.older_than_seconds, body.keep_versions)
    done = await removals.remove_old(
        call.catalog, table, branch, retention, call.origin, dry_run=body.dry_run
    )
    return msgspec.convert(done, CleanedTable, from_attributes=True)
