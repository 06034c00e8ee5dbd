"""The operations that fill computed columns: request a backfill, or have its plan explained."""

from typing import Annotated, Any

import msgspec

from penstock.catalog import columns, tables
from penstock.catalog.columns import Backfill
from penstock.model.branches import check_branch
from penstock.server.http import Reply
from penstock.server.lance.call import Body, Call, Version

Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class BackfillColumn(Body):
    column: Annotated[str, msgspec.Meta(min_length=1)]
    branch: str | None = None
    where: str | None = None
    read_version: Version | None = None
    num_frags: Count | None = None
    task_size: CountOrNone | None = None
    concurrency: Count | None = None
    commit_granularity: Count | None = None
    checkpoint_size: CountOrNone | None = None
    # Taken and without effect: Spark and the size of a checkpoint decide these.
    intra_applier_concurrency: Count | None = None
    min_checkpoint_size: CountOrNone | None = None
    max_checkpoint_size: CountOrNone | None = None
    batch_checkpoint_flush_interval_seconds: Seconds | None = None
    cluster: str | None = None
    manifest: Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")] | None = None
    force: bool | None = None


class QueuedJob(msgspec.Struct):
    job_id: str


_backfill = msgspec.json.Decoder(BackfillColumn)


async def request(call: Call) -> Reply:
    wanted = _read(call)
    table = await tables.get(call.catalog.database, call.id)
    id = await columns.request_backfill(call.catalog, table, wanted, call.origin)
    return Reply(202, msgspec.json.encode(QueuedJob(id)))


async def explain(call: Call) -> Reply:
    wanted = _read(call)
    table = await tables.get(call.catalog.database, call.id)
    plan = await columns.explain_backfill(call.catalog, table, wanted)
    return Reply(200, msgspec.json.encode(plan))


def _read(call: Call) -> Backfill:
    body = call.decode(_backfill)
    options: dict[str, Any] = {
        "num_frags": body.num_frags,
        "task_size": body.task_size or None,
        "concurrency": body.concurrency,
        "commit_granularity": body.commit_granularity,
        "checkpoint_size": body.checkpoint_size or None,
        "force": bool(body.force),
    }
    return Backfill(
        column=body.column,
        branch=check_branch(body.branch),
        options=options,
        read_version=body.read_version,
        where=body.where if body.where and body.where.strip() else None,
        cluster=body.cluster,
        manifest=body.manifest,
    )
