"""The operation that previews a column for a few rows; it waits for the job."""

from typing import Annotated

import msgspec

from penstock.catalog.columns import previews
from penstock.catalog.columns.previews import PreviewRequest
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.waiting import wait_for_job
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest, Unavailable
from penstock.model.branches import check_branch
from penstock.model.jobs import SUCCEEDED, Job
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.backfills import QueuedJob
from penstock.server.lance.handlers.job_stream import watched
from penstock.server.transport.http import ClientGone, Reply

ROWS, MAX_ROWS = 10, 1_000
WAIT_SECONDS, MAX_WAIT_SECONDS = 60.0, 600.0


class PreviewColumn(Body):
    column: Annotated[str, msgspec.Meta(min_length=1)]
    rows: Annotated[int, msgspec.Meta(ge=1, le=MAX_ROWS)] = ROWS
    where: str | None = None
    branch: str | None = None
    cluster: str | None = None
    manifest: Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")] | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT_SECONDS)] = WAIT_SECONDS


_preview = msgspec.json.Decoder(PreviewColumn)


async def preview(call: Call) -> Reply:
    body = call.decode(_preview)
    table = await tables.get(call.catalog.database, call.id)
    wanted = PreviewRequest(
        column=body.column,
        branch=check_branch(body.branch),
        rows=body.rows,
        where=body.where if body.where and body.where.strip() else None,
        cluster=body.cluster,
        manifest=body.manifest,
    )
    id = await previews.request_preview(call.catalog, table, wanted)
    async with watched(call) as leaving:
        job = await wait_for_job(call.catalog, id, body.timeout_seconds, leaving)
        if leaving.done() and not job.is_finished:
            await jobs.cancel(call.catalog, id)
            raise ClientGone
    return _answer(job)


def _answer(job: Job) -> Reply:
    if not job.is_finished:
        return Reply(202, msgspec.json.encode(QueuedJob(job.id)))
    if job.state == SUCCEEDED:
        return Reply(200, msgspec.json.encode({"job_id": job.id, **job.result}))
    if job.retryable:
        raise Unavailable(f"the preview failed: {job.error}", detail="ask again in a moment")
    raise InvalidRequest(
        f"the preview was not made: {job.error or job.state.lower()}",
        detail=f"the log of job {job.id} tells more",
    )
