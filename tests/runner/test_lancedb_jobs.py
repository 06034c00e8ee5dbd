"""The jobs of lancedb's own client, unmodified, sync and async: real backfills and refreshes."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lancedb
import pytest
from lancedb.exceptions import JobCancelledError, JobNotFoundError

from tests.harness.data.calls import count_calls, slowly_double, slowly_split
from tests.harness.data.functions import virtual_column
from tests.harness.data.tables import new_name
from tests.harness.processes.runners import JobTable, RunnerProcess, make_filled
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS, until
from tests.harness.views.runner_views import make_source, make_words

pytestmark = pytest.mark.timeout(400)

ROWS = 200
WAIT = timedelta(seconds=180)
SHORT = timedelta(seconds=0.5)


def make_column(server: Server, log: Path) -> JobTable:
    """A table with a column `twice`, which takes four seconds to fill."""
    table = make_filled(server, rows=ROWS, fragments=2)
    column = virtual_column(slowly_double(log), ["id"], {"twice": {"type": "int64"}})
    body = {"new_columns": [{"name": "twice", "virtual_column": column}]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    return table


def make_slow_view(server: Server, log: Path) -> str:
    """A view that takes four seconds to fill; without a namespace, which lancedb cannot name."""
    source = make_source(server, range(ROWS))
    query = f"SELECT id, title, text FROM {source.namespace}.t"
    view = make_words(source, log, slowly_split, source_query=query)
    name = new_name()
    body = {"new_table_name": name, "new_namespace_id": []}
    server.post(f"/v1/table/{view.id}/rename", body).raise_for_status()
    return name


def connect(server: Server) -> Any:
    return lancedb.connect("db://x", api_key="k", host_override=server.url)


async def connect_async(server: Server) -> Any:
    return await lancedb.connect_async("db://x", api_key="k", host_override=server.url)


def pause_and_resume(db: Any, job: Any, log: Path) -> Any:
    """Pause a job in the middle of its work, and resume it; returns its result."""
    until(lambda: count_calls(log) > 10)
    assert db.pause_job(job.id) == "pausing"
    until(lambda: job.status() == "PAUSED")
    assert db.pause_job(job.id) == "already_paused"
    assert {each.job_id: each.state for each in db.list_jobs()}[job.id] == "paused"
    assert 10 < (calls := count_calls(log)) < ROWS
    with pytest.raises(TimeoutError):
        job.wait(timeout=SHORT)
    assert count_calls(log) == calls
    assert db.resume_job(job.id) == "resumed"
    assert db.resume_job(job.id) == "not_paused"
    done = job.wait(timeout=WAIT)
    assert count_calls(log) == ROWS
    assert db.open_job(job.id).state == "finished"
    states = job.events()["state"].to_pylist()
    assert states[:5] == ["queued", "running", "pause_requested", "paused", "resumed"]
    assert states[-1] == "succeeded"
    return done


def test_a_backfill_is_paused_and_resumed(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log, db = tmp_path / "log", connect(server)
    namespace, name = make_column(server, log).id
    table = db.open_table(name, namespace_path=[namespace])
    job = table.refresh_column_async("twice")
    done = pause_and_resume(db, job, log)
    assert (done.rows_assigned, done.rows_failed, done.rows_remaining) == (ROWS, 0, 0)
    assert table.count_rows("twice = id * 2") == ROWS
    again = db.open_job(job.id)
    assert (again.job_type, again.spec["column"]) == ("backfill", "twice")
    assert again.result["version"] == done.published_version
    assert again.failure is None


def test_a_refresh_is_paused_and_resumed(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log, db = tmp_path / "log", connect(server)
    view = db.open_materialized_view(make_slow_view(server, log))
    done = pause_and_resume(db, view.refresh_async(), log)
    assert (done.mode, done.version) == ("rebuild", view.table.version)
    assert view.table.count_rows() == done.rows_written


def test_jobs_that_are_not_there_or_over_are_told(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log, db = tmp_path / "log", connect(server)
    namespace, name = make_column(server, log).id
    job = db.open_table(name, namespace_path=[namespace]).refresh_column_async("twice")
    until(lambda: count_calls(log) > 10)
    db.pause_job(job.id)
    until(lambda: job.status() == "PAUSED")
    assert db.cancel_job(job.id) is True
    with pytest.raises(JobCancelledError):
        job.wait(timeout=WAIT)
    assert job.status() == "cancelled"
    assert db.resume_job(job.id) == "not_paused"
    with pytest.raises(Exception, match="only a job that waits or runs can be paused"):
        db.pause_job(job.id)
    with pytest.raises(JobNotFoundError):
        db.open_job("none")
    assert db.cancel_job("none") is False
    for change in (db.pause_job, db.resume_job):
        with pytest.raises(Exception, match="404"):
            change("none")


async def until_async(is_so: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not await is_so():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


def test_the_async_client_pauses_resumes_and_cancels(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    asyncio.run(use_async(server, tmp_path))


async def use_async(server: Server, tmp_path: Path) -> None:
    log, db = tmp_path / "log", await connect_async(server)
    namespace, name = make_column(server, log).id
    table = await db.open_table(name, namespace_path=[namespace])
    job = await table.refresh_column_async("twice")

    async def is_paused() -> bool:
        return bool(await job.status() == "PAUSED")

    async def has_begun() -> bool:
        return count_calls(log) > 10

    await until_async(has_begun)
    assert await db.pause_job(job.id) == "pausing"
    await until_async(is_paused)
    assert await db.pause_job(job.id) == "already_paused"
    assert {each.job_id: each.state for each in await db.list_jobs()}[job.id] == "paused"
    assert await db.resume_job(job.id) == "resumed"
    done = await job.wait(WAIT)
    assert (done.rows_assigned, count_calls(log)) == (ROWS, ROWS)
    assert (await db.open_job(job.id)).state == "finished"
    view = await db.open_materialized_view(make_slow_view(server, tmp_path / "words"))
    refresh = await view.refresh_async()
    assert await db.cancel_job(refresh.id) is True
    with pytest.raises(JobCancelledError):
        await refresh.wait(WAIT)
    await refresh.refresh()
    assert (refresh.state, refresh.job_type) == ("cancelled", "refresh")
    with pytest.raises(JobNotFoundError):
        await db.open_job("none")
