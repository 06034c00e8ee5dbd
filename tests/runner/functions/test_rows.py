"""Functions through server and runner: only rows that need it are computed, whatever happened."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.functions import new_column, virtual_column
from tests.harness.processes.runners import JobTable, RunnerProcess, make_filled
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.timeout(400)


def declare(table: JobTable, calls: Path) -> None:
    path = str(calls)

    def double(id: int) -> int:
        with open(path, "a") as file:
            file.write(f"{id}\n")
        print(f"doubling {id}")
        return id * 2

    body = {"new_columns": [new_column(virtual_column(double, ["id"], {"twice": "int64"}))]}
    table.server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()


def fill(table: JobTable, **more: Any) -> dict[str, Any]:
    body = {"column": "twice", **more}
    told = table.server.post(f"/v1/table/{table.name}/explain_backfill", body)
    asked = table.server.post(f"/v1/table/{table.name}/backfill_column", body)
    job = asked.raise_for_status().json()["job_id"]
    found = table.finish(job) | {"job_id": job}
    assert found["status"] == "SUCCEEDED", found
    assert found["function_calls"] == str(told.raise_for_status().json()["function_calls"])
    return found


def test_only_rows_that_need_it_are_computed(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    table = make_filled(server, rows=40)
    declare(table, calls)
    found = fill(table, where="id < 30")
    log = server.get(f"/v1/jobs/{found['job_id']}/logs").json()
    printed = [line["text"] for line in log["lines"] if line["level"] == "print"]
    assert sorted(printed) == sorted(f"doubling {id}" for id in range(30))
    assert (found["function_calls"], found["rows_left"]) == ("30", "10")
    table.open().optimize.compact_files()
    assert fill(table)["function_calls"] == "10"
    table.open().update({"text": "'other'"}, where="id < 9")
    assert fill(table)["function_calls"] == "0"
    table.open().optimize.compact_files()
    table.open().update({"id": "id + 100"}, where="id < 3")
    assert fill(table)["function_calls"] == "3"
    assert len(calls.read_text().splitlines()) == 43
    values = table.open().to_table(columns=["id", "twice"]).to_pylist()
    assert all(row["twice"] == row["id"] * 2 for row in values)


def test_a_branch_goes_on_from_what_was_filled_before(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    table = make_filled(server, rows=20)
    declare(table, tmp_path / "calls")
    assert fill(table)["function_calls"] == "20"
    table.open().optimize.compact_files()
    body = {"name": "dev"}
    server.post(f"/v1/table/{table.name}/branches/create", body).raise_for_status()
    change = {"updates": [["id", "id + 100"]], "predicate": "id < 2", "branch": "dev"}
    server.post(f"/v1/table/{table.name}/update", change).raise_for_status()
    assert fill(table, branch="dev")["function_calls"] == "2"
    assert fill(table)["function_calls"] == "0"


def test_the_row_that_ends_a_job_is_in_the_ledger_and_tried_again_alone(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    table = make_filled(server, rows=20)
    spoiled = tmp_path / "spoiled"
    spoiled.touch()
    path = str(spoiled)

    def fail_on_seven(id: int) -> int:
        import os

        if id == 7 and os.path.exists(path):
            raise ValueError("seven is spoiled")
        return id

    body = {"new_columns": [new_column(virtual_column(fail_on_seven, ["id"], {"twice": "int64"}))]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    asked = server.post(f"/v1/table/{table.name}/backfill_column", {"column": "twice"})
    found = table.finish(asked.raise_for_status().json()["job_id"])
    assert found["status"] == "FAILED"
    assert "failed at row id 7 (fragment 1, offset 2): ValueError: seven is" in found["error"]
    (record,) = server.post(f"/v1/table/{table.name}/errors").json()["records"]
    assert (record["row_id"], record["error_message"]) == (7, "seven is spoiled")
    spoiled.unlink()
    assert fill(table, errors_only=True)["function_calls"] == "1"
    # What the first job had finished is there: how much that is, the moment of its end decides.
    asked = server.post(f"/v1/table/{table.name}/backfill_column", {"column": "twice"})
    found = table.finish(asked.raise_for_status().json()["job_id"])
    assert (found["status"], found["rows_done"]) == ("SUCCEEDED", "19")
    assert int(found["function_calls"]) <= 19
