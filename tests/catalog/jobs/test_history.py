"""Finished jobs are kept for a while; those that are not finished, for as long as it takes."""

from dataclasses import replace

import pytest

from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs, leases
from penstock.catalog.jobs.leases import ProgressReport
from penstock.catalog.jobs.queue import Queue
from penstock.database.interface import Transaction
from penstock.errors import JobNotFound
from penstock.jobs.specs import BackfillSpec
from penstock.model.jobs import SUCCEEDED, Job, LogLine, NewJob, Report
from penstock.model.paging import request_page
from penstock.model.slots import Slot

pytestmark = pytest.mark.anyio


async def enqueue(catalog: Catalog, slot: str) -> str:
    """A job whose table is the root's own entry, which is always there."""
    spec = BackfillSpec(table=(), table_id="x", column=slot)
    new = NewJob("backfill", "t", f"t.{slot}", Slot("x", slot), spec, "local")
    return await catalog.database.write(jobs.enqueue_in, new, 3)


async def add_object(tx: Transaction) -> None:
    await tx.fetch(
        "INSERT INTO objects (id, namespace, name, kind, properties, created_at) "
        "VALUES ('x', '', 't', 'table', '{}', 0)"
    )


async def change(tx: Transaction, column: str, text: str) -> None:
    await tx.fetch(f"UPDATE jobs SET {column} = $1", text)


async def age(tx: Transaction, days: int) -> None:
    await tx.fetch("UPDATE jobs SET finished_at = finished_at - $1", days * 86_400_000)


async def list_all(catalog: Catalog) -> set[str]:
    page = await jobs.list_jobs(catalog, request_page("s", None, None, 100), jobs.JobFilter())
    return {job.id for job in page.items}


async def test_finished_jobs_are_forgotten_after_a_while(catalog: Catalog) -> None:
    await catalog.database.write(add_object)
    waits, done = await enqueue(catalog, "a"), await enqueue(catalog, "b")
    await jobs.cancel(catalog, waits)
    again = await enqueue(catalog, "a")
    found = await leases.lease(catalog, "r", None, 9)
    assert [job.id for job in found] == [done, again]
    news = ProgressReport({}, [LogLine(1, "info", "x")])
    await leases.finish(catalog, done, 1, Report(SUCCEEDED, {}), news)
    await catalog.database.write(age, 29)
    await maintenance.run_round(catalog)
    assert await list_all(catalog) == {waits, done, again}
    await catalog.database.write(age, 2)
    await maintenance.run_round(catalog)
    assert await list_all(catalog) == {again}
    with pytest.raises(JobNotFound, match=done):
        await jobs.get(catalog.database, done)
    assert await catalog.database.fetch("SELECT 1 FROM job_logs") == []


@pytest.mark.slow
async def test_more_than_one_round_can_forget_are_forgotten(catalog: Catalog) -> None:
    for n in range(jobs.PURGE_AT_ONCE + 5):
        await jobs.cancel(catalog, await enqueue(catalog, f"s{n}"))
    await catalog.database.write(age, 31)
    await jobs.purge(catalog)
    assert await list_all(catalog) == set()


async def test_a_job_whose_object_is_gone_fails_when_it_is_leased(catalog: Catalog) -> None:
    id = await enqueue(catalog, "a")
    assert await leases.lease(catalog, "r", None, 9) == []
    found = await jobs.get(catalog.database, id)
    assert (found.state, found.error) == ("FAILED", "the table of t.a was dropped")


@pytest.mark.parametrize(
    ("column", "text", "why"),
    [("spec", '{"table":[]}', "spec cannot be read"), ("kind", "dance", "jobs of kind 'dance'")],
)
async def test_a_job_that_cannot_be_read_fails_and_the_next_is_leased(
    catalog: Catalog, column: str, text: str, why: str
) -> None:
    await catalog.database.write(add_object)
    broken = await enqueue(catalog, "a")
    await catalog.database.write(change, column, text)
    fine = await enqueue(catalog, "b")
    assert [job.id for job in await leases.lease(catalog, "r", None, 9)] == [fine]
    found = await jobs.get(catalog.database, broken)
    assert found.state == "FAILED"
    assert why in found.error
    assert why in jobs.describe(found)["error"]


async def test_a_runner_that_is_known_to_be_gone_loses_its_jobs_at_once(catalog: Catalog) -> None:
    await catalog.database.write(add_object)
    first, second = await enqueue(catalog, "a"), await enqueue(catalog, "b")
    await leases.lease(catalog, "gone", None, 1)
    await leases.lease(catalog, "here", None, 1)
    assert await leases.release(catalog, "gone") == 1
    assert (await jobs.get(catalog.database, first)).state == "QUEUED"
    assert (await jobs.get(catalog.database, second)).state == "RUNNING"


async def test_nothing_expires_that_is_in_time(catalog: Catalog) -> None:
    await catalog.database.write(add_object)
    await enqueue(catalog, "a")
    await leases.lease(catalog, "r", None, 1)
    assert await leases.expire(catalog) == 0
    hurried = replace(catalog, queue=Queue(lease_seconds=-1))
    (job,) = [each for each in await _jobs(catalog) if each.state == "RUNNING"]
    await leases.heartbeat(hurried, job.id, 1, ProgressReport({}))
    assert await leases.expire(catalog) == 1


async def _jobs(catalog: Catalog) -> list[Job]:
    return [await jobs.get(catalog.database, id) for id in await list_all(catalog)]
