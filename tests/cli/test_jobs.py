"""The commands about jobs, as real processes; the test itself is the runner."""

import json
import os
import pty
import re
import subprocess
from typing import Any

import penstock
from tests.harness.clients.commands import PENSTOCK, ask, run
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes import nursery
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

ERROR = {
    "fragment": 0,
    "inputs": '{"text": "x"}',
    "exception": "ValueError",
    "message": "no",
    "traceback": "Traceback …",
    "tries": 1,
    "at": 1,
}


def test_a_backfill_is_explained_then_done(server: Server, table: penstock.Table) -> None:
    plan = ask(server, "backfill", table.name, "size", "--dry-run")
    assert (plan["mode"], plan["rows_to_update"]) == ("full", 3)
    assert ask(server, "explain", table.name, "size") == plan
    assert "no column is named" in run(server, "explain", table.name, code=2)
    queued = ask(server, "backfill", table.name, "size", "--no-wait")
    (listed,) = ask(server, "jobs", "list", "--table", table.name)
    assert (listed["job_id"], listed["status"]) == (queued["job_id"], "QUEUED")
    finish(server, queued["job_id"])
    told = ask(server, "jobs", "show", queued["job_id"])
    assert (told["status"], told["rows_done"]) == ("SUCCEEDED", 3)
    shown = run(server, "jobs", "show", queued["job_id"])
    assert re.search(r"^status +SUCCEEDED$", shown, re.MULTILINE)


def test_a_job_that_fails_is_exit_code_1(server: Server, table: penstock.Table) -> None:
    command = [str(PENSTOCK), "backfill", table.name, "size", "--json"]
    program = subprocess.Popen(
        command, env={**os.environ, "PENSTOCK_URL": server.url}, stdout=subprocess.PIPE, text=True
    )
    finish(server, None, "FAILED", error="division by zero")
    output, _ = program.communicate(timeout=60)
    assert program.returncode == 1
    found = json.loads(output)
    assert (found["status"], found["error"]) == ("FAILED", "division by zero")
    assert run(server, "jobs", "errors", found["job_id"]) == ""
    assert ask(server, "jobs", "logs", found["job_id"]) == []


def test_a_job_is_canceled_unless_it_is_a_dry_run(server: Server, table: penstock.Table) -> None:
    id = ask(server, "backfill", table.name, "size", "--no-wait")["job_id"]
    assert ask(server, "jobs", "cancel", id, "--dry-run")["status"] == "QUEUED"
    assert ask(server, "jobs", "cancel", id)["status"] == "CANCELED"
    assert "canceled" in run(server, "jobs", "watch", id, code=1)


def test_a_job_is_paused_and_resumed_unless_it_is_a_dry_run(
    server: Server, table: penstock.Table
) -> None:
    id = ask(server, "backfill", table.name, "size", "--no-wait")["job_id"]
    assert ask(server, "jobs", "pause", id, "--dry-run")["status"] == "QUEUED"
    assert run(server, "jobs", "pause", id) == f"asked for a pause of job {id}, which is PAUSED\n"
    assert [each["job_id"] for each in ask(server, "jobs", "list", "--status", "paused")] == [id]
    assert ask(server, "status")["jobs"]["PAUSED"] == 1
    assert ask(server, "jobs", "resume", id, "--dry-run")["status"] == "PAUSED"
    assert ask(server, "jobs", "resume", id)["status"] == "QUEUED"
    finish(server, id)
    assert "SUCCEEDED" in run(server, "jobs", "pause", id, code=2)


def test_jobs_are_watched_live_on_a_terminal(server: Server, table: penstock.Table) -> None:
    id = ask(server, "backfill", table.name, "size", "--no-wait")["job_id"]
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [PENSTOCK, "jobs", "watch"],
        env={**os.environ, "PENSTOCK_URL": server.url, "TERM": "xterm"},
        stdout=slave,
    )
    os.close(slave)
    seen = ""

    def sees(wanted: str) -> bool:
        nonlocal seen
        seen += os.read(master, 65536).decode()
        return wanted in seen

    try:
        until(lambda: sees("waits for a runner"))
        runner = Runner(server)
        (leased,) = runner.lease()
        runner.report(leased, progress={"rows_total": 3, "rows_done": 1}).raise_for_status()
        until(lambda: sees("1/3 rows"))
        assert "\x1b[1A" in seen
        runner.finish(leased, result={"version": 5}).raise_for_status()
        assert leased["id"] == id
        until(lambda: sees("succeeded"))
        assert program.wait(60) == 0
    finally:
        os.close(master)


def test_a_job_whose_function_failed_on_rows_is_exit_code_3(
    server: Server, table: penstock.Table
) -> None:
    id = ask(server, "backfill", table.name, "size", "--no-wait")["job_id"]
    runner = Runner(server)
    (leased,) = runner.lease()
    errors = [{**ERROR, "row_id": n, "offset": n} for n in range(30)]
    runner.report_errors(leased, *errors).raise_for_status()
    counts = {"rows_total": 90, "rows_done": 90, "function_calls": 90, "calls_saved": 7}
    runner.report(leased, progress={**counts, "rows_failed": 30}).raise_for_status()
    runner.finish(leased, result={"version": 5}).raise_for_status()
    watched = run(server, "jobs", "watch", id, code=3)
    assert "succeeded: 90 rows, 30 failed, 90 calls, 7 saved" in watched
    told = ask(server, "jobs", "show", id[:9])
    assert (told["rows_failed"], told["calls_saved"], told["job_id"]) == (30, 7, id)
    shown = run(server, "jobs", "show", id[:9])
    assert re.search(r"rows_failed +30\n", shown)
    for word in ("requested", "started", "took", "finished"):
        assert re.search(rf"^{word} +\S", shown, re.MULTILINE)
    (line,) = run(server, "jobs", "list", "--table", table.name).splitlines()[1:]
    assert line.split()[:4] == [id[:8], "backfill", f"{table.name}.size", "SUCCEEDED"]
    assert "90 rows, 30 failed" in line
    done = nursery.run(["jobs", "errors", id[:8], "--url", server.url])
    assert done.stdout.count("ValueError: no") == 20
    assert done.stderr == "20 of 30 rows; --limit shows more\n"
    assert len(ask(server, "jobs", "errors", id, "--limit", "50")) == 30


def finish(server: Server, id: str | None, state: str = "SUCCEEDED", **body: Any) -> None:
    """Lease the one job that there is, once it is there, and end it."""
    runner = Runner(server)
    (leased,) = runner.lease(wait_seconds=30)
    assert id in (None, leased["id"])
    runner.report(leased, progress={"rows_total": 3, "rows_done": 3}).raise_for_status()
    runner.finish(leased, state, **body).raise_for_status()
