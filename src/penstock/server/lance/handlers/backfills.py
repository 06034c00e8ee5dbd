"""Operations that fill bound columns: request a backfill, or explain its plan."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.columns import backfills
from penstock.catalog.columns.backfills import BackfillRequest
from penstock.catalog.jobs import ledger
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.model.branches import check_branch
from penstock.server.lance.call import Body, Call, Version
from penstock.server.transport.http import Reply

Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Threads = Annotated[int, msgspec.Meta(ge=1, le=1024)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=86400)]

# As a `where`, it selects the rows that a function failed on.
ERRORS = "errors"


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
    intra_applier_concurrency: Threads | None = None
    min_checkpoint_size: CountOrNone | None = None
    max_checkpoint_size: CountOrNone | None = None
    batch_checkpoint_flush_interval_seconds: Seconds | None = None
    cluster: str | None = None
    manifest: Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")] | None = None
    force: bool | None = None
    errors_only: bool | None = None


class QueuedJob(msgspec.Struct):
    job_id: str


_backfill = msgspec.json.Decoder(BackfillColumn)


async def request(call: Call) -> Reply:
    wanted = _read(call)
    table = await tables.get(call.catalog.database, call.id)
    id = await backfills.request_backfill(call.catalog, table, wanted, call.origin)
    return Reply(202, msgspec.json.encode(QueuedJob(id)))


async def explain(call: Call) -> Reply:
    wanted = _read(call)
    table = await tables.get(call.catalog.database, call.id)
    failed = None
    if wanted.errors_only:
        column = await backfills.check(call.catalog, table, wanted)
        failed = await ledger.find_rows(call.catalog, table.id, wanted.branch, column.binding)
    plan = await backfills.explain_backfill(call.catalog, table, wanted, failed)
    return Reply(200, msgspec.json.encode(plan))


def _read(call: Call) -> BackfillRequest:
    body = call.decode(_backfill)
    where = body.where if body.where and body.where.strip() else None
    is_errors = where is not None and where.strip().lower() == ERRORS
    options: dict[str, Any] = {
        "num_frags": body.num_frags,
        "task_size": body.task_size or None,
        "concurrency": body.concurrency,
        "commit_granularity": body.commit_granularity,
        **read_sizes(body.checkpoint_size, body.min_checkpoint_size, body.max_checkpoint_size),
        "intra_applier_concurrency": body.intra_applier_concurrency,
        "batch_checkpoint_flush_interval_seconds": body.batch_checkpoint_flush_interval_seconds,
        "force": bool(body.force),
    }
    return BackfillRequest(
        column=body.column,
        branch=check_branch(body.branch),
        options=options,
        read_version=body.read_version,
        where=None if is_errors else where,
        cluster=body.cluster,
        manifest=body.manifest,
        errors_only=bool(body.errors_only) or is_errors,
    )


def read_sizes(first: int | None, least: int | None, most: int | None) -> dict[str, int | None]:
    """The checkpoint sizes, which must not contradict each other; 0 is none."""
    first, least, most = first or None, least or None, most or None
    if least is not None and most is not None and least > most:
        raise InvalidRequest(
            f"min_checkpoint_size is {least}, more than max_checkpoint_size, which is {most}",
            detail="make them agree, or leave one out",
        )
    return {"checkpoint_size": first, "min_checkpoint_size": least, "max_checkpoint_size": most}
