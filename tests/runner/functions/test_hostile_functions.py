"""A function that wants to get out of its worker, through server and runner."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.functions import new_column, virtual_column
from tests.harness.processes.runners import RunnerProcess, make_filled
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.timeout(400)


def test_what_it_leaves_in_its_worker_is_not_run_in_the_runner(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    path = tmp_path / "boom"
    path.touch()
    note = f"import os; open({str(path)!r}, 'a').write(f'{{os.getpid()}} ')"

    def leave(id: int) -> int:
        from pyspark.accumulators import INT_ACCUMULATOR_PARAM, Accumulator

        bomb: Any = type("Bomb", (), {"__reduce__": lambda _: (exec, (note,))})
        Accumulator(7, bomb(), INT_ACCUMULATOR_PARAM)
        return id

    table = make_filled(server, rows=4)
    body = {"new_columns": [new_column(virtual_column(leave, ["id"], {"left": "int64"}))]}
    server.post(f"/v1/table/{table.name}/add_columns", body).raise_for_status()
    asked = server.post(f"/v1/table/{table.name}/backfill_column", {"column": "left"})
    found = table.finish(asked.raise_for_status().json()["job_id"])
    assert found["status"] == "SUCCEEDED", found
    assert path.read_text() == ""
