"""Jobs that are paused and resumed, on a real server and real runners."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.data.calls import count_calls, slowly_double, slowly_split
from tests.harness.data.functions import virtual_column
from tests.harness.jobs.fake_runner import cancel
from tests.harness.processes.runners import (
    SLOW,
    JobTable,
    RunnerProcess,
    Team,
    make_filled,
    restart,
    wait,
)
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import make_source, make_words, words_of
from tests.runner.conftest import LEASES

pytestmark = pytest.mark.timeout(400)


def ask(server: Server, verb: str, job: str) -> httpx.Response:
    return server.post(f"/v1/jobs/{verb}", {"job_id": job}).raise_for_status()


def wait_for(server: Server, job: str, state: str) -> dict[str, Any]:
    return wait(server, job, lambda found: found["status"] == state)


def pause(server: Server, job: str) -> dict[str, Any]:
    ask(server, "pause", job)
    return wait_for(server, job, "PAUSED")


def start_counted(server: Server, log: Path) -> tuple[JobTable, str]:
    """A backfill of three hundred rows, which has computed some of them."""
    table = make_filled(server, rows=300, fragments=3)
    column = virtual_column(slowly_double(log), ["id"], {"twice": {"type": "int64"}})
    body = {"new_columns": [{"name": "twice", "virtual_column": column}]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    job = table.request(column="twice", checkpoint_size=10, intra_applier_concurrency=2)
    until(lambda: count_calls(log) > 40)
    return table, job


def ends_right(table: JobTable, job: str, log: Path) -> None:
    assert table.finish(job)["status"] == "SUCCEEDED"
    assert count_calls(log) == 300
    assert table.open().count_rows("twice = id * 2") == 300
    assert table.loose_files() == set()


def test_a_backfill_is_paused_and_goes_on_without_calling_anything_again(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table, job = start_counted(server, log)
    pause(server, job)
    calls = count_calls(log)
    assert calls < 300
    # Its place is free, and others work on the same table.
    assert table.fill()["status"] == "SUCCEEDED"
    assert count_calls(log) == calls
    ask(server, "resume", job)
    ends_right(table, job, log)


def test_a_refresh_is_paused_and_goes_on_without_calling_anything_again(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log, source = tmp_path / "log", make_source(server, range(200))
    view = make_words(source, log, slowly_split)
    job = view.request(checkpoint_size=5, concurrency=1)
    until(lambda: count_calls(log) > 20)
    pause(server, job)
    calls = count_calls(log)
    assert calls < 200
    ask(server, "resume", job)
    assert view.finish(job)["status"] == "SUCCEEDED"
    assert count_calls(log) == 200
    assert view.show("id", "title", "__child_index", "word") == words_of(source)


def test_a_job_of_expressions_is_paused_and_its_finished_fragments_are_used(
    server: Server, runner: RunnerProcess
) -> None:
    table = make_filled(server, rows=12_000, fragments=48, expression=SLOW)
    job = table.request(task_size=250)
    wait(server, job, lambda found: int(found.get("fragments_done", 0)) > 0)
    found = pause(server, job)
    assert table.is_empty()
    ask(server, "resume", job)
    done = table.finish(job)
    assert (done["status"], done["attempt"]) == ("SUCCEEDED", "2")
    assert int(done["function_calls"]) <= 12_000 - int(found["rows_done"])
    assert table.is_right()
    assert table.loose_files() == set()


@pytest.mark.slow
def test_a_paused_job_is_canceled_and_the_next_takes_what_it_made(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table, job = start_counted(server, log)
    pause(server, job)
    cancel(server, job).raise_for_status()
    again = table.request(column="twice", checkpoint_size=10)
    assert again != job
    assert table.finish(again)["status"] == "SUCCEEDED"
    assert count_calls(log) == 300


@pytest.mark.slow
def test_a_server_that_is_killed_while_a_job_pauses_finds_it_paused(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table, job = start_counted(server, log)
    ask(server, "pause", job)
    restart(server, environ=LEASES)
    wait_for(server, job, "PAUSED")
    ask(server, "resume", job)
    ends_right(table, job, log)


@pytest.mark.slow
def test_a_runner_that_is_killed_while_a_job_pauses_leaves_it_paused(
    server: Server, team: Team, runner: RunnerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table, job = start_counted(server, log)
    holder = team.holder(job)
    ask(server, "pause", job)
    holder.kill()
    found = wait_for(server, job, "PAUSED")
    assert int(found["attempt"]) < int(found["max_attempts"])
    ask(server, "resume", job)
    team.at_least(1)
    assert table.finish(job)["status"] == "SUCCEEDED"
    # What each of two threads of two tasks had under way.
    assert 300 <= count_calls(log) <= 300 + 4 * 10


@pytest.mark.slow
def test_a_runner_that_is_stopped_while_a_job_pauses_leaves_it_paused(
    server: Server, team: Team, runner: RunnerProcess, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    table, job = start_counted(server, log)
    holder = team.holder(job)
    ask(server, "pause", job)
    assert holder.stop() == 0
    wait_for(server, job, "PAUSED")
    ask(server, "resume", job)
    team.at_least(1)
    assert table.finish(job)["status"] == "SUCCEEDED"
    assert table.open().count_rows("twice = id * 2") == 300
