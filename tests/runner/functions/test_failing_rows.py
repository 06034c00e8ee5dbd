"""A column that fills itself and fails on a row: the ledger has it, and it alone is tried again."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.arrow import send
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.processes.runners import JobTable, RunnerProcess, make_filled
from tests.harness.processes.servers import Server

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]

SKIP = {"on_error": {"action": "skip"}}


def wait_for_job(server: Server, table: str, count: int) -> str:
    """The newest job of a table that has so many."""
    deadline = time.monotonic() + 60
    while len(found := server.post("/v1/jobs/list", {"target": table}).json()["jobs"]) < count:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return str(found[0]["job_id"])


def declare(table: JobTable, calls: Path, spoiled: Path) -> None:
    """A column that notes each call, and fails on row 3 as long as a file is there."""
    calls_path, spoiled_path = str(calls), str(spoiled)

    def double(id: int) -> int:
        import os

        with open(calls_path, "a") as file:
            file.write(f"{id}\n")
        if id == 3 and os.path.exists(spoiled_path):
            raise ValueError("three is spoiled")
        return id * 2

    column = virtual_column(double, ["id"], {"twice": "int64"}, knobs=SKIP, auto_backfill=True)
    body = {"new_columns": [new_column(column)]}
    table.server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()


def test_a_row_that_failed_is_noted_and_tried_again_alone(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    calls, spoiled = tmp_path / "calls", tmp_path / "spoiled"
    spoiled.touch()
    table = make_filled(server, rows=20)
    declare(table, calls, spoiled)

    found = table.finish(wait_for_job(server, table.name, 1))
    assert (found["status"], found["auto_backfill"]) == ("SUCCEEDED", "true")
    assert (found["function_calls"], found["rows_failed"]) == ("20", "1")
    listed: dict[str, Any] = server.post(f"/v1/table/{table.name}/errors").json()
    (record,) = listed["records"]
    assert (record["row_id"], record["error_type"]) == (3, "ValueError")
    assert (record["error_message"], record["function"]) == ("three is spoiled", "double")
    assert "id=3" in record["inputs"]
    assert "three is spoiled" in record["traceback"]

    rows = table.open().to_table(columns=["id", "text"]).slice(0, 1)
    send(server, f"/v1/table/{table.name}/insert", rows).raise_for_status()
    found = table.finish(wait_for_job(server, table.name, 2))
    assert found["status"] == "SUCCEEDED"

    spoiled.unlink()
    before = len(calls.read_text().splitlines())
    body = {"column": "twice", "errors_only": True}
    answer = server.post(f"/v1/table/{table.name}/backfill_column", body)
    found = table.finish(answer.raise_for_status().json()["job_id"])
    assert found["status"] == "SUCCEEDED", found
    assert calls.read_text().splitlines()[before:] == ["3"]
    values = table.open().to_table(columns=["id", "twice"]).to_pylist()
    assert all(row["twice"] == row["id"] * 2 for row in values)
