"""Tables of the system namespace in which Geneva's client looks for jobs and failed rows."""

import json
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.catalog.jobs.geneva_tables import find_job_id
from tests.catalog.jobs.test_ledger import failure
from tests.harness.clients import pylance
from tests.harness.data.tables import code, new_name
from tests.harness.jobs.fake_runner import Column, cancel
from tests.harness.processes.servers import Server

JOBS, ERRORS = "__system$geneva_jobs", "__system$geneva_errors"
# As that client sends them.
JOB_COLUMNS = [
    *("table_name", "column_name", "job_id", "job_type", "object_ref", "status", "launched_at"),
    *("completed_at", "config", "launched_by", "manifest_id", "manifest_checksum", "metrics"),
    *("events", "updated_at", "cluster_name", "input_columns", "output_columns"),
]
ERROR_COLUMNS = [
    *("error_id", "error_type", "error_message", "error_trace", "job_id", "table_uri"),
    *("table_name", "table_version", "column_name", "udf_name", "udf_version", "input_columns"),
    *("output_columns", "actor_id", "fragment_id", "batch_index", "row_address", "attempt"),
    *("max_attempts", "bisect_depth", "timestamp"),
]


def declare(server: Server, table: str) -> None:
    """As that client does it, for a table whose namespace nobody made."""
    answer = server.post(f"/v1/table/{table}/declare?delimiter=%24", {"id": table.split("$")})
    assert answer.status_code == 200 or code(answer) == (409, 5)


def query(server: Server, table: str, condition: str | None, k: int = 10) -> pa.Table:
    declare(server, table)
    body = {
        "id": table.split("$"),
        "bypass_vector_index": True,
        "columns": {"column_names": JOB_COLUMNS if table == JOBS else ERROR_COLUMNS},
        "filter": condition,
        "k": k,
        "prefilter": True,
        "vector": {"single_vector": []},
        "with_row_id": False,
    }
    answer = server.post(f"/v1/table/{table}/query?delimiter=%24", body)
    assert answer.status_code == 200, answer.text
    return pa.ipc.open_file(answer.content).read_all()


def rows(server: Server, table: str, condition: str | None, k: int = 10) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = query(server, table, condition, k).to_pylist()
    return found


def test_the_system_namespace_is_made_for_the_first_table_in_it(server: Server) -> None:
    table = f"__system${new_name()}"
    assert code(server.post(f"/v1/table/{table}/describe", {})) == (404, 4)
    answer = server.post(f"/v1/table/{table}/declare?delimiter=%24", {"id": table.split("$")})
    assert answer.status_code == 200
    assert "__system" in server.get("/v1/namespace/$/list").json()["namespaces"]
    assert code(server.post("/v1/table/__other$t/declare", {})) == (404, 1)


def test_what_the_client_writes_into_such_a_table_is_adopted(server: Server) -> None:
    table = f"__system${new_name()}"
    declare(server, table)
    pylance.Client(pylance.connect(server), table.split("$")).write(1, 2)
    answer = server.post(f"/v1/table/{table}/query", {"k": 1000, "vector": {"single_vector": []}})
    assert pa.ipc.open_file(answer.content).read_all().num_rows == 2


def test_a_table_of_jobs_that_nobody_declared_is_not_found(column: Column) -> None:
    column.server.post(f"/v1/table/{JOBS}/drop", {})
    assert code(column.server.post(f"/v1/table/{JOBS}/query", {"k": 10})) == (404, 4)


def test_a_job_is_followed_until_it_is_done(column: Column) -> None:
    id = column.request()
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert (told["table_name"], told["column_name"]) == (column.table.split("$")[1], "len")
    assert (told["status"], told["job_type"], told["completed_at"]) == ("PENDING", "BACKFILL", None)
    (job,) = column.runner.lease()
    progress = {"fragments_done": 1, "fragments_total": 2, "rows_done": 5, "rows_failed": 1}
    column.runner.report(job, progress=progress).raise_for_status()
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert told["status"] == "RUNNING"
    metrics = {each["name"]: each for each in map(json.loads, told["metrics"])}
    assert (metrics["fragments"]["n"], metrics["fragments"]["total"]) == (1, 2)
    assert not metrics["fragments"]["done"]
    assert metrics["rows_skipped"]["n"] == 1
    column.runner.finish(job).raise_for_status()
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert told["status"] == "DONE"
    assert told["launched_at"] < told["completed_at"]


def test_a_job_that_fails_tells_why(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, "FAILED", error="no such text").raise_for_status()
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert (told["status"], told["events"]) == ("FAILED", ["no such text"])


def test_a_canceled_job_ends_in_that_clients_words(column: Column) -> None:
    id = column.request()
    cancel(column.server, id).raise_for_status()
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert (told["status"], told["events"]) == ("CANCELLED", ["canceled"])


def test_jobs_are_listed_by_table_and_state_the_newest_first(column: Column) -> None:
    first = column.request()
    cancel(column.server, first).raise_for_status()
    second = column.request()
    name = column.table.split("$")[1]
    found = [row["job_id"] for row in rows(column.server, JOBS, f"table_name = '{name}'")]
    assert found[:2] == [second, first]
    condition = f"table_name = '{name}' and status == 'CANCELLED'"
    assert first in [row["job_id"] for row in rows(column.server, JOBS, condition, 1000)]
    assert rows(column.server, JOBS, "job_id = 'none'") == []
    assert len(rows(column.server, JOBS, None, 1)) == 1


def write_own(server: Server, table: str, rows: pa.Table) -> None:
    """As that client writes rows of work that it does without the server: into the files."""
    declare(server, table)
    client = pylance.Client(pylance.connect(server), table.split("$"))
    lance.write_dataset(rows, mode="append", **client.target)


def test_rows_of_the_clients_own_work_are_told_too(column: Column) -> None:
    id, own = column.request(), new_name()
    column.server.post(f"/v1/table/{JOBS}/drop", {})
    mine = {"job_id": [own, id], "status": ["RUNNING", "FAILED"], "table_name": ["t", "t"]}
    write_own(column.server, JOBS, pa.table(mine))
    (told,) = rows(column.server, JOBS, f"job_id = '{own}'")
    assert (told["status"], told["metrics"]) == ("RUNNING", None)
    # Of its own jobs the server tells, whatever somebody wrote.
    (told,) = rows(column.server, JOBS, f"job_id = '{id}'")
    assert told["status"] == "PENDING"
    states = {row["job_id"]: row["status"] for row in rows(column.server, JOBS, None, 1000)}
    assert (states[own], states[id]) == ("RUNNING", "PENDING")
    column.server.post(f"/v1/table/{JOBS}/drop", {})


def test_a_table_of_that_name_with_other_columns_adds_no_rows(column: Column) -> None:
    id = column.request()
    column.server.post(f"/v1/table/{JOBS}/drop", {})
    write_own(column.server, JOBS, pa.table({"job_id": ["a"], "launched_at": ["yesterday"]}))
    assert id in [row["job_id"] for row in rows(column.server, JOBS, None, 1000)]
    assert rows(column.server, JOBS, "job_id = 'a'") == []
    column.server.post(f"/v1/table/{JOBS}/drop", {})


def test_a_condition_that_cannot_be_read_is_refused(column: Column) -> None:
    declare(column.server, JOBS)
    for table, condition in ((JOBS, "no_such = 1"), (JOBS, "job_id ="), (ERRORS, "job_id = 1 +")):
        declare(column.server, table)
        answer = column.server.post(f"/v1/table/{table}/query", {"k": 1, "filter": condition})
        assert answer.status_code in (400, 404), (condition, answer.text)


def test_failed_rows_are_told_in_that_clients_words(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    far = failure(4, fragment=2**40)
    column.runner.report_errors(job, failure(3, fragment=1, tries=2), far).raise_for_status()
    name = column.table.split("$")[1]
    condition = f"job_id = '{id}' and table_name = '{name}' and error_type = 'ValueError'"
    told = {row["fragment_id"]: row for row in rows(column.server, ERRORS, condition)}
    assert (told[1]["error_message"], told[1]["column_name"]) == ("not a number", "len")
    assert (told[1]["row_address"], told[1]["attempt"]) == (2**32 + 3, 2)
    assert told[2**40]["row_address"] is None
    assert rows(column.server, ERRORS, f"job_id = '{id}' and column_name = 'x'") == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("job_id = 'a'", "a"),
        ("table_name = 't' AND job_id == 'a'", "a"),
        ("table_name = 't'", None),
        ("job_id = 'a' OR job_id = 'b'", None),
        ("job_id = 'a' AND NOT status = 'DONE'", None),
        ("job_id <> 'a'", None),
        ("", None),
        (None, None),
    ],
)
def test_a_job_is_looked_up_only_where_no_other_can_match(
    condition: str | None, found: str | None
) -> None:
    assert find_job_id(condition) == found
