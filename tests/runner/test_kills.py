"""Whatever is killed while a job runs, the job ends right, and nothing is done twice."""

import os
import signal

import pytest

from tests.harness.jobs.fake_runner import describe
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
from tests.runner.conftest import LEASES

pytestmark = pytest.mark.timeout(400)


def begun(server: Server, rows: int = 4_000, fragments: int = 16) -> tuple[JobTable, str]:
    """A job that has finished some of its fragments, and not all.

    Progress is told once a second, so there must be work for several.
    """
    table = make_filled(server, rows=rows, fragments=fragments, expression=SLOW)
    # Each fragment is a task, so that little is done again.
    job = table.request(task_size=rows // fragments)
    wait(server, job, lambda found: int(found.get("fragments_done", 0)) > 0)
    return table, job


def ends_right(table: JobTable, job: str) -> dict[str, str]:
    found = table.finish(job)
    assert found["status"] == "SUCCEEDED", found
    assert table.is_right()
    assert len(table.commits(job)) == 1
    assert table.loose_files() == set()
    return found


@pytest.mark.slow
def test_killed_python_workers_cost_their_tasks_only(
    server: Server, team: Team, runner: RunnerProcess
) -> None:
    table, job = begun(server)
    # All of them: which one works on the job cannot be seen.
    team.holder(job).kill_workers()
    assert describe(server, job)["status"] == "RUNNING"
    assert ends_right(table, job)["attempt"] == "1"


@pytest.mark.slow
def test_a_restarted_server_does_not_disturb_a_job(server: Server, runner: RunnerProcess) -> None:
    table, job = begun(server, rows=2_000, fragments=8)
    restart(server, environ=LEASES)
    assert ends_right(table, job)["attempt"] == "1"


@pytest.mark.slow
def test_a_killed_jvm_ends_the_attempt_and_not_the_runner(
    server: Server, team: Team, runner: RunnerProcess
) -> None:
    table, job = begun(server)
    holder = team.holder(job)
    os.kill(holder.jvm(), signal.SIGKILL)
    found = ends_right(table, job)
    assert found["attempt"] == "2"
    # What the first attempt had finished is not computed again.
    assert int(found["function_calls"]) < 4_000
    assert holder.process.poll() is None


@pytest.mark.slow
def test_a_paused_runner_writes_nothing_after_its_lease_went(
    server: Server, team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server, rows=5_000, fragments=20)
    paused = team.holder(job)
    paused.pause()
    try:
        # The second attempt may go to the long poll that the paused runner left open.
        found = ends_right(table, job)
        assert int(found["attempt"]) >= 2
        before = table.open().version
    finally:
        paused.resume()
    # It hears of it at its next heartbeat, or when it wants to report the end.
    paused.wait_for("lost its lease|finished by others")
    after = describe(server, job)
    assert (after["status"], after["attempt"]) == ("SUCCEEDED", found["attempt"])
    assert table.open().version == before
    assert table.is_right()


@pytest.mark.slow
def test_a_killed_runner_is_followed_by_another(
    server: Server, team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server)
    team.holder(job).kill()
    found = ends_right(table, job)
    assert found["attempt"] == "2"
    assert int(found["function_calls"]) < 4_000


@pytest.mark.slow
@pytest.mark.parametrize("point", ["files written", "backfill committed"])
def test_a_runner_killed_at_a_bad_moment_is_followed_by_another(
    server: Server, team: Team, runner: RunnerProcess, point: str
) -> None:
    table = make_filled(server)
    with team.asleep():
        doomed = team.start(PENSTOCK_CRASH_AT=point).wait_until_warm()
        job = table.request()
        wait(server, job, lambda found: str(doomed.process.pid) in found.get("runner", ""))
        assert doomed.process.wait(120) == -signal.SIGKILL
    found = ends_right(table, job)
    assert found["function_calls"] == "0"
    assert found["rows_done"] == "100"


@pytest.mark.slow
def test_a_stopped_runner_gives_its_job_back(
    server: Server, team: Team, pair: list[RunnerProcess]
) -> None:
    table, job = begun(server, rows=6_000, fragments=24)
    holder = team.holder(job)
    assert holder.stop() == 0
    # The second attempt may go to the long poll of the runner that stops, which gives it back too.
    found = ends_right(table, job)
    assert int(found["attempt"]) >= 2
    assert int(found["function_calls"]) < 6_000
