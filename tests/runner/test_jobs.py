"""Jobs from request to end, on a real server and a real runner."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.calls import recorded
from tests.harness.data.functions import virtual_column
from tests.harness.jobs.fake_runner import cancel, describe
from tests.harness.processes.runners import FINISHED, SLOW, RunnerProcess, make_filled, wait
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

# The first test waits for Spark, which starts slowly on a busy machine.
pytestmark = pytest.mark.timeout(400)


def test_a_backfill_fills_the_column(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    found = table.fill()
    assert found["status"] == "SUCCEEDED", found
    assert table.is_right()
    assert found["version"] == str(table.open().version)
    assert (found["mode"], found["rows_done"], found["rows_total"]) == ("full", "100", "100")
    assert (found["fragments_done"], found["function_calls"]) == ("4", "100")
    assert float(found["rows_per_second"]) > 0
    assert table.loose_files() == set()


def test_a_job_tells_what_it_did_one_after_the_other(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    job = table.request()
    table.finish(job)
    phases = server.get(f"/v1/jobs/{job}/phases").json()["phases"]
    assert [each["name"] for each in phases] == ["queued", "running"]
    steps = phases[1]["steps"]
    told = [each["name"] for each in steps if each["name"] != "starting"]
    order = ["planning", "computing", "committing", "finishing"]
    assert sorted(told, key=order.index) == told
    assert {"computing", "committing"} <= set(told)
    assert [each["to"] for each in steps[:-1]] == [each["from"] for each in steps[1:]]
    assert steps[-1]["to"] == phases[1]["to"]


def test_the_second_backfill_has_nothing_to_do(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    table.fill()
    found = table.fill()
    assert (found["status"], found["mode"]) == ("SUCCEEDED", "incremental")
    assert (found["function_calls"], found["calls_saved"]) == ("0", "100")
    assert "rows_per_second" not in found


def test_explain_says_what_the_runner_does(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    body = {"column": "value", "where": "id < 30"}
    plan = server.post(f"/v1/table/{table.name}/explain_backfill", body).json()
    found = table.fill(where="id < 30")
    told = {key: str(plan[key]) for key in ("mode", "reason", "function_calls")}
    assert told == {key: found[key] for key in told}
    assert plan["fragments"] == int(found["fragments_total"]) == 2


def test_a_value_that_cannot_be_computed_fails_the_job_at_once(
    server: Server, runner: RunnerProcess
) -> None:
    table = make_filled(server, expression="100 / (id - 50)")
    found = table.fill()
    assert (found["status"], found["attempt"]) == ("FAILED", "1")
    assert "Divide by zero" in found["error"]
    assert "fragment 2" in found["error"]
    assert table.is_empty()
    assert table.loose_files() == set()


def test_a_job_log_tells_what_happened(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    job = table.request()
    table.finish(job)
    lines = [line["text"] for line in server.get(f"/v1/jobs/{job}/logs").json()["lines"]]
    assert any("never filled" in line for line in lines)
    assert any("4 fragments, 100 rows" in line for line in lines)


def test_a_cancel_stops_the_tasks_and_leaves_nothing(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server, rows=10_000, fragments=40, expression=SLOW)
    job = table.request(commit_granularity=None)
    wait(server, job, lambda found: int(found.get("fragments_done", 0)) > 0)
    assert cancel(server, job).status_code == 200
    found = table.finish(job)
    assert found["status"] == "CANCELED"
    assert int(found["rows_done"]) < 10_000
    assert table.is_empty()
    assert table.loose_files() == set()


def doubled(log: Path) -> Any:
    def call(id: int) -> int:
        recorded(log, id)
        time.sleep(0.02)
        return id * 2

    return call


def test_the_next_job_goes_on_where_a_canceled_one_was(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    log, table = tmp_path / "log", make_filled(server, rows=300, fragments=3)
    column = virtual_column(doubled(log), ["id"], {"twice": {"type": "int64"}})
    body = {"new_columns": [{"name": "twice", "virtual_column": column}]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    job = table.request(column="twice", checkpoint_size=10)
    until(lambda: log.exists() and log.read_text().count("\n") > 60)
    assert cancel(server, job).status_code == 200
    assert table.finish(job)["status"] == "CANCELED"
    table.open().optimize.compact_files()
    found = table.fill(column="twice", checkpoint_size=10)
    assert found["status"] == "SUCCEEDED", found
    # What each of the two tasks had begun when it heard of the cancel.
    assert 300 <= log.read_text().count("\n") <= 300 + 2 * 10
    assert table.loose_files() == set()


def test_progress_is_told_while_a_job_runs(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server, rows=6_000, fragments=60, expression=SLOW)
    # One task after the other, so that it takes several seconds and reports.
    job = table.request(concurrency=1)
    seen = set()
    while (found := describe(server, job))["status"] not in FINISHED:
        seen.add(found.get("fragments_done", "0"))
        time.sleep(0.1)
    assert found["status"] == "SUCCEEDED", found
    assert len(seen) >= 3
    assert table.is_right()


def test_jobs_run_side_by_side(server: Server, runner: RunnerProcess) -> None:
    tables = [make_filled(server) for _ in range(6)]
    jobs = [table.request() for table in tables]
    for table, job in zip(tables, jobs, strict=True):
        assert table.finish(job)["status"] == "SUCCEEDED"
        assert table.is_right()


def test_a_table_that_is_gone_fails_the_job(server: Server, runner: RunnerProcess) -> None:
    slow = make_filled(server, rows=3_000, fragments=12, expression=SLOW)
    job = slow.request()
    wait(server, job, lambda found: found["status"] == "RUNNING")
    server.post(f"/v1/table/{slow.name}/drop").raise_for_status()
    found = slow.finish(job)
    assert found["status"] in ("FAILED", "CANCELED")


def double(id: int) -> int:
    if id == 3:
        raise ValueError(f"not {id}")
    return id * 2


def test_a_preview_shows_what_a_function_does(server: Server, runner: RunnerProcess) -> None:
    table = make_filled(server)
    column = virtual_column(double, ["id"], {"twice": {"type": "int64"}})
    body = {"new_columns": [{"name": "twice", "virtual_column": column}]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    version = table.open().version
    wanted = {"column": "twice", "rows": 3, "where": "id > 1"}
    answer = server.post(f"/v1/table/{table.name}/preview_column", wanted)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert [row["values"]["twice"] for row in found["values"]] == [4, None, 8]
    (error,) = found["errors"]
    assert (error["row_id"], error["exception"], error["message"]) == (3, "ValueError", "not 3")
    assert found["rows_per_second"] > 0
    assert table.open().version == version
    assert table.loose_files() == set()
    sql = server.post(f"/v1/table/{table.name}/preview_column", {"column": "value", "rows": 1})
    assert [row["values"] for row in sql.json()["values"]] == [{"value": 1}]
