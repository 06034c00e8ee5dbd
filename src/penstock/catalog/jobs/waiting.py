"""Wait for a job's end, as long as somebody is there to run it and somebody to tell."""

import asyncio

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.queue import wait_for
from penstock.model.jobs import QUEUED, START_RUNNER, Job

# How often to look for what other servers were told.
LOOK_SECONDS = 1.0
# How long a job may wait where no runner was seen: one may ask another server.
UNSEEN_SECONDS = 3.0


class CallerLeft(Exception):
    """Whoever waited for a job's answer has gone."""


async def wait_for_job(
    catalog: Catalog, id: str, seconds: float, leaving: "asyncio.Task[None] | None" = None
) -> Job:
    """Wait for a job to end; returns it earlier when the time is up or the caller has gone."""
    queue, clock = catalog.queue, asyncio.get_running_loop().time
    deadline = clock() + seconds
    try:
        while True:
            bell = queue.bell(id)
            job = await jobs.get(catalog.database, id)
            left = deadline - clock()
            if job.is_finished or left <= 0 or queue.is_closed:
                return job
            if leaving is not None and leaving.done():
                return job
            await wait_for(bell, min(LOOK_SECONDS, left))
    finally:
        # Ring for others who follow the job; otherwise nobody would remove the bell.
        queue.ring(id)


async def run_now(
    catalog: Catalog, id: str, seconds: float, leaving: "asyncio.Task[None] | None" = None
) -> Job:
    """Wait for a job that is of use to its caller only, and cancel it when the waiting ends.

    A job that nobody leased was not begun for want of a runner.
    """
    try:
        job = await jobs.get(catalog.database, id)
        if not await has_runner(catalog, job.cluster):
            unseen = 0.0 if catalog.queue.has_missed_runner(job.cluster) else UNSEEN_SECONDS
            job = await wait_for_job(catalog, id, min(seconds, unseen), leaving)
            seconds -= unseen
        if job.attempt or await has_runner(catalog, job.cluster):
            job = await wait_for_job(catalog, id, max(0.0, seconds), leaving)
        else:
            catalog.queue.miss_runner(job.cluster)
        return job if job.is_finished else await jobs.cancel(catalog, id)
    except asyncio.CancelledError:
        await jobs.cancel(catalog, id)
        raise


async def describe(catalog: Catalog, job: Job) -> dict[str, str]:
    """Everything that is known of a job, and why it waits if no runner will take it."""
    told = jobs.describe(job)
    if job.state == QUEUED and not await has_runner(catalog, job.cluster):
        told["waiting"] = "; ".join(explain_absence(catalog, job.cluster))
    return told


def explain_absence(catalog: Catalog, cluster: str) -> tuple[str, str]:
    """Why no runner takes the jobs of a cluster, and what to do."""
    if trouble := catalog.queue.find_trouble(cluster):
        return (
            f"the runner of cluster {cluster} cannot work: {trouble}",
            f"or {START_RUNNER} on another machine",
        )
    return f"no runner of cluster {cluster} asks this server for jobs", START_RUNNER


async def has_runner(catalog: Catalog, cluster: str) -> bool:
    """Whether a runner asked this server for work lately, or works on a job of the cluster."""
    if catalog.queue.has_seen_runner(cluster):
        return True
    row = await catalog.database.fetch_one(
        "SELECT 1 FROM jobs WHERE state = 'RUNNING' AND lease_until >= now_millis() "
        "AND cluster = $1 LIMIT 1",
        cluster,
    )
    return row is not None
