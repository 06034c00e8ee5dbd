"""Have a runner try the new functions of an alteration on some rows, before the view is altered.

The caller waits for it. Where no runner answers in time, the alteration's own job finds out.
"""

import asyncio
from dataclasses import replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.waiting import CallerLeft, explain_absence, has_runner, run_now
from penstock.catalog.materialized_views import materialized_views, refreshes
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.database.interface import Transaction
from penstock.errors import FunctionFailed, InvalidRequest
from penstock.jobs.refresh.altering.changes import list_new_functions
from penstock.jobs.specs import PREVIEW, PreviewSpec, RefreshSpec
from penstock.model.jobs import FAILED, SUCCEEDED, Job, NewJob
from penstock.model.origins import Origin
from penstock.model.slots import slot_of_preview

# Rows are few because somebody waits, and because each may cost money.
ROWS = 8
WAIT_SECONDS = 30.0
REMEDY = (
    "the view is what it was; correct the function, or send preview as false to alter it anyway"
)


async def check(
    catalog: Catalog, job: NewJob, origin: Origin, leaving: "asyncio.Task[None] | None"
) -> str:
    """Refuse an alteration, given its job, whose new functions fail on the rows of its query.

    Returns why they were not tried, "" when they were or there are none. Raises CallerLeft.
    """
    altered = job.spec
    assert isinstance(altered, RefreshSpec)
    new = list_new_functions(altered.made_by, altered.definition)
    if not new:
        return ""
    spec = PreviewSpec(
        table=altered.table,
        table_id=altered.table_id,
        resources=altered.resources,
        column=new[0].outputs[0].column if new[0].outputs else "",
        rows=ROWS,
        altered=altered,
        source_ids=altered.source_ids,
    )
    slot = slot_of_preview(altered.table_id)
    preview = replace(job, kind=PREVIEW, slot=slot, spec=spec, also=())
    id = await catalog.database.write(_enqueue, preview, altered, origin)
    catalog.queue.ring()
    done = await run_now(catalog, id, WAIT_SECONDS, leaving)
    if done.state == SUCCEEDED:
        _check_result(done)
        return str(done.result.get("untried", ""))
    if leaving is not None and leaving.done():
        raise CallerLeft
    if done.state == FAILED and not done.retryable:
        raise _refuse(done.error, altered)
    return await _explain(catalog, done)


async def _enqueue(tx: Transaction, job: NewJob, altered: RefreshSpec, origin: Origin) -> str:
    ids = {*altered.states, *altered.source_ids}
    await materialized_views.check_sources(tx, origin.grantees, ids)
    # One attempt: the caller waits for it and can ask again.
    return await refreshes.enqueue_in(tx, job, RefreshRequest(), 1)


def _check_result(job: Job) -> None:
    if failure := job.result.get("failure"):
        frames = job.result.get("detail")
        raise FunctionFailed(
            f"the view was not altered: {failure}",
            detail=f"{REMEDY}\n{frames}" if frames else REMEDY,
        )


def _refuse(told: str, altered: RefreshSpec) -> InvalidRequest:
    """What Spark says of the query, with the names that its author gave to tables."""
    for source in altered.definition.sources:
        told = told.replace(source.name, ".".join(source.table))
    message, _, remedy = told.partition("; ")
    return InvalidRequest(f"the view was not altered: {message}", detail=remedy or REMEDY)


async def _explain(catalog: Catalog, job: Job) -> str:
    """Why a preview that ended without an answer has none."""
    if job.error:
        return f"the runner says: {job.error}"
    if not job.attempt and not await has_runner(catalog, job.cluster):
        return explain_absence(catalog, job.cluster)[0]
    return f"it was not done after {WAIT_SECONDS:g} seconds"
