"""Jobs: waiting, progress, failures; the test itself is the runner."""

import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import penstock
from penstock.cli.main import penstock as command
from penstock.errors import InvalidRequest, JobCanceled, JobFailed, TransactionNotFound
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

ERROR = {
    "row_id": 7,
    "fragment": 0,
    "offset": 7,
    "inputs": '{"text": "x"}',
    "exception": "ValueError",
    "message": "no",
    "traceback": "Traceback …",
    "tries": 1,
    "at": 1,
}
BAR = re.compile(r"backfill \S+\.size  █+[▏▎▍▌▋▊▉]?░+  50%  50/100 rows")


@pytest.fixture
def column(table: penstock.Table) -> penstock.Table:
    return table.add_column("size", computed="length(text)")


@pytest.fixture
def runner(server: Server, cluster: str) -> Runner:
    return Runner(server, cluster)


def test_a_job_is_waited_for(column: penstock.Table, runner: Runner, cluster: str) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    assert (job.status, job.done(), job.kind) == ("QUEUED", False, "backfill")
    with pytest.raises(TimeoutError, match="is QUEUED after 0 seconds"):
        job.wait(timeout=0)
    (leased,) = runner.lease()
    runner.report(leased, progress={"rows_total": 3, "rows_done": 1, "function_calls": 1})
    assert job.status == "QUEUED"
    assert job.reload().status == "RUNNING"
    assert (job.rows_total, job.rows_done, job.function_calls) == (3, 1, 1)
    assert "RUNNING: 1 of 3 rows, 1 call>" in repr(job)
    threading.Timer(0.2, runner.finish, (leased,), {"result": {"version": 5}}).start()
    assert job.wait() is job
    assert (job.status, job.version, job.describe()["result"]["version"]) == ("SUCCEEDED", 5, 5)
    assert job.id in job._repr_html_()
    assert "SUCCEEDED" in job._repr_html_()


def test_a_job_that_fails_says_why(column: penstock.Table, runner: Runner, cluster: str) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    (leased,) = runner.lease()
    line = {"at": 1_700_000_000_000, "level": "info", "text": "computing"}
    runner.report(leased, logs=[line]).raise_for_status()
    runner.report_errors(leased, ERROR).raise_for_status()
    runner.finish(leased, "FAILED", error="division by zero").raise_for_status()
    with pytest.raises(JobFailed, match="division by zero") as failed:
        job.wait()
    assert not isinstance(failed.value, JobCanceled)
    assert job.error == "division by zero"
    assert "division by zero" in repr(job)
    assert job.logs() == ["2023-11-14 22:13:20 UTC info    computing"]
    (found,) = job.errors()
    assert (found.row_id, found.error_type, found.column) == (7, "ValueError", "size")
    assert column.errors("size") == [found]


def test_a_job_tells_values_of_their_types_as_of_its_last_look(
    lake: penstock.Lake, column: penstock.Table, runner: Runner, cluster: str
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    (leased,) = runner.lease()
    counts = {"rows_total": 1003, "rows_done": 1003, "rows_failed": 3, "phase": "computing"}
    told = {"rows_per_second": 2.5, "seconds_left": 3, "function_calls": 1000, "calls_saved": 5}
    runner.report(leased, progress=counts | told)
    assert (job.status, job.rows_failed, job.started_at) == ("QUEUED", 0, None)
    (listed,) = lake.jobs(table=column.name)
    assert (listed.rows_failed, listed.seconds_left, listed.rows_per_second) == (3, 3.0, 2.5)
    assert (listed.phase, listed.status) == ("computing", "RUNNING")
    states = {"fresh": 1, "failed": 3}
    runner.finish(leased, result={"version": 5, "rows_by_state": states}).raise_for_status()
    assert (job.wait().rows_by_state, job.version, job.calls_saved) == (states, 5, 5)
    assert job.created_at is not None
    assert job.finished_at is not None
    assert job.created_at.tzinfo is not None
    assert job.created_at <= job.finished_at
    assert repr(job).endswith(
        f"{column.name}.size, SUCCEEDED: 1,003 rows, 3 failed, 1,000 calls, 5 saved>"
    )


def test_a_job_is_found_by_the_beginning_of_its_id(
    lake: penstock.Lake, column: penstock.Table, cluster: str
) -> None:
    # Of seventeen ids, two begin with the same digit.
    wheres = [f"id > {n}" for n in range(17)]
    jobs = [column.backfill("size", where=w, wait=False, cluster=cluster) for w in wheres]
    assert {lake.job(each.id[:13]).id for each in jobs} == {each.id for each in jobs}
    beginnings = [each.id[0] for each in jobs]
    alike = next(each for each in beginnings if beginnings.count(each) > 1)
    with pytest.raises(InvalidRequest, match=f"the ids of several jobs begin with {alike}: "):
        lake.job(alike)


def test_all_failed_rows_are_listed_unless_a_limit_is_said(
    column: penstock.Table, runner: Runner, cluster: str
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    (leased,) = runner.lease()
    for start in (0, 800):
        errors = [{**ERROR, "row_id": n, "offset": n} for n in range(start, start + 800)]
        runner.report_errors(leased, *errors).raise_for_status()
    found = job.errors()
    assert sorted(each.row_id for each in found) == [*range(1600)]
    assert found == column.errors("size")
    assert job.errors(limit=1001) == found[:1001]
    assert column.errors(limit=5) == found[:5]


def test_a_job_is_canceled(
    lake: penstock.Lake, column: penstock.Table, runner: Runner, cluster: str
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    assert [each.id for each in lake.jobs(table=column.name, status="QUEUED")] == [job.id]
    assert lake.job(job.id).cancel().status == "CANCELED"
    with pytest.raises(JobCanceled):
        job.wait()
    with pytest.raises(TransactionNotFound):
        lake.job("nothing")


def test_a_paused_job_is_waited_for_until_it_is_resumed(
    lake: penstock.Lake,
    column: penstock.Table,
    runner: Runner,
    cluster: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    assert job.pause().status == "PAUSED"
    assert not job.done()
    assert runner.lease() == []
    assert [each.id for each in lake.jobs(table=column.name, status="paused")] == [job.id]
    with pytest.raises(TimeoutError, match=r"is PAUSED after 0\.1 seconds; resume it"):
        job.wait(timeout=0.1, progress=True)
    assert "paused until it is resumed" in capsys.readouterr().err
    assert job.resume().status == "QUEUED"
    (leased,) = runner.lease()
    job.pause()
    with pytest.raises(TimeoutError, match="is RUNNING"):
        job.wait(timeout=0.1, progress=True)
    assert "pausing" in capsys.readouterr().err
    runner.finish(leased).raise_for_status()
    assert job.wait().status == "SUCCEEDED"
    with pytest.raises(InvalidRequest, match="SUCCEEDED"):
        job.pause()


WAITING = """
import sys, penstock
job = penstock.connect(sys.argv[1]).job(sys.argv[2])
try:
    job.wait(**eval(sys.argv[3]))
except penstock.errors.JobFailed:
    sys.exit(3)
"""


def waiting(job: penstock.Job, url: str, options: str, **streams: Any) -> "subprocess.Popen[bytes]":
    """A program that waits for a job."""
    command = [sys.executable, "-c", WAITING, url, job.id, options]
    return subprocess.Popen(command, env={**os.environ, "TERM": "xterm"}, **streams)


@pytest.mark.parametrize("end", ["SUCCEEDED", "FAILED"])
def test_progress_is_a_bar_on_a_terminal(
    column: penstock.Table, runner: Runner, cluster: str, server: Server, end: str
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    master, slave = pty.openpty()
    program = waiting(job, server.url, "{}", stderr=slave)
    os.close(slave)
    seen = ""

    def sees(wanted: str | re.Pattern[str]) -> bool:
        nonlocal seen
        seen += os.read(master, 65536).decode()
        return bool(re.search(wanted, seen))

    try:
        until(lambda: sees("waits for a runner"))
        (leased,) = runner.lease()
        runner.report(leased, progress={"rows_total": 100, "rows_done": 50})
        until(lambda: sees(BAR), "there is no bar")
        assert "\r\x1b[K" in seen
        # One line of its own says why it waits.
        assert seen.count("\n") == 1
        runner.finish(leased, end, error="no").raise_for_status()
        until(lambda: sees(f"{end.lower()}: .*  0:.*\n"))
        assert program.wait(60) == (0 if end == "SUCCEEDED" else 3)
    finally:
        os.close(master)
    assert (": 100 rows" in seen) is (end == "SUCCEEDED")


def test_progress_is_silent_elsewhere_and_lines_when_asked_for(
    column: penstock.Table, runner: Runner, cluster: str, server: Server
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    (leased,) = runner.lease()
    runner.finish(leased, result={"version": 5}).raise_for_status()
    for options, shown in (("{}", ""), ("{'progress': True}", "succeeded")):
        program = waiting(job, server.url, options, stderr=subprocess.PIPE)
        _, error = program.communicate(timeout=60)
        assert shown in error.decode()
        assert bool(shown) is bool(error)
        assert b"\x1b" not in error


NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
InteractiveShell.instance()
import penstock
job = penstock.connect(sys.argv[1]).job(sys.argv[2])
with capture_output() as shown:
    job.wait()
print([each.data["text/html"] for each in shown.outputs])
"""


def test_progress_is_a_bar_in_a_notebook(
    column: penstock.Table, runner: Runner, cluster: str, server: Server
) -> None:
    job = column.backfill("size", wait=False, cluster=cluster)
    (leased,) = runner.lease()
    runner.report(leased, progress={"rows_total": 100, "rows_done": 50})
    runner.finish(leased, result={"version": 5}).raise_for_status()
    command = [sys.executable, "-c", NOTEBOOK, server.url, job.id]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=True)
    assert '<progress value="100" max="100"></progress>' in done.stdout
    assert done.stderr == ""


def test_a_plan_is_read_and_computed_with(column: penstock.Table) -> None:
    plan = column.explain_backfill("size")
    assert (plan.mode, plan["rows_to_update"], plan.estimated_seconds) == ("full", 3, None)
    assert plan.reason in str(plan)
    assert str(plan).startswith(f"backfill of {column.name}.size\n")
    assert "3 to update" in repr(plan)
    assert "3 to update" in plan._repr_html_()


def test_a_job_that_no_runner_takes_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with servers.running(tmp_path) as server, penstock.connect(server.url) as lake:
        table = lake.create_table("t", {"text": ["a"]}).add_column("size", computed="length(text)")
        job = table.backfill("size", wait=False)
        told = "no runner of cluster local asks this server for jobs; start a runner"
        with pytest.raises(TimeoutError, match=f"is QUEUED after 0 seconds: {told}"):
            job.wait(timeout=0)
        assert told in repr(job)
        assert told in job._repr_html_()
        assert f"backfill t.size waits: {told}" in capsys.readouterr().err
        shown = CliRunner().invoke(command, ["jobs", "show", job.id, "--url", server.url])
        assert told in shown.output
        runner = Runner(server, "local")
        assert runner.lease()
        assert not job.reload().waiting
