"""The ledger: rows that functions failed on, noted once, found by table, column and job."""

import time
from collections.abc import Iterator
from typing import Any

import lancedb
import pytest

from penstock.errors import LeaseLost
from penstock.model.functions import RowError
from penstock.runner.attempt import LeasedAttempt
from penstock.runner.client import Lease, ServerClient
from tests.harness.data.arrow import people, send
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, cancel, make_column
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, database_of
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

LEDGER = "__system$errors"


def failure(row_id: int, **fields: Any) -> dict[str, Any]:
    return {
        "row_id": row_id,
        "fragment": 0,
        "offset": row_id,
        "inputs": "text='a'",
        "exception": "ValueError",
        "message": "not a number",
        "traceback": "line 1, in f",
        "tries": 1,
        "at": int(time.time() * 1000),
    } | fields


def lease(column: Column) -> dict[str, Any]:
    column.request()
    (job,) = column.runner.lease()
    return job


def listed(column: Column, /, **body: Any) -> dict[str, Any]:
    found: dict[str, Any] = column.ask("errors", body).raise_for_status().json()
    return found


def rows_of(found: dict[str, Any]) -> list[int]:
    return [record["row_id"] for record in found["records"]]


def test_a_table_without_failures_lists_none(column: Column) -> None:
    assert listed(column) == {"records": [], "fragments": [], "truncated": False}


def test_a_failure_is_listed_with_all_that_is_known_of_it(column: Column) -> None:
    job = lease(column)
    at = int(time.time() * 1000) - 5
    error = failure(2, fragment=7, offset=1, tries=3, at=at)
    assert column.runner.report_errors(job, error).json() == {"recorded": 1}
    (record,) = listed(column)["records"]
    assert len(record.pop("error_id")) == 32
    assert record == {
        "job_id": job["id"],
        "fragment_id": 7,
        "row_offset": 1,
        "column": "len",
        "columns": ["len"],
        "function": "length(text)",
        "function_version": "",
        "table_version": 2,
        "error_type": "ValueError",
        "error_message": "not a number",
        "created_at_millis": at,
        "branch": "main",
        "row_id": 2,
        "attempt": 1,
        "tries": 3,
        "inputs": "text='a'",
        "traceback": "line 1, in f",
    }


def test_what_is_sent_twice_is_noted_once(column: Column) -> None:
    job = lease(column)
    assert column.runner.report_errors(job, failure(1), failure(2)).json() == {"recorded": 2}
    assert column.runner.report_errors(job, failure(2), failure(3)).json() == {"recorded": 1}
    assert column.runner.report_errors(job, failure(3)).json() == {"recorded": 0}
    assert column.runner.report_errors(job, failure(4), failure(4)).json() == {"recorded": 1}
    assert sorted(rows_of(listed(column))) == [1, 2, 3, 4]


def test_only_the_attempt_that_holds_the_job_reports(column: Column) -> None:
    job = lease(column)
    late = job | {"attempt": 2}
    assert code(column.runner.report_errors(late, failure(1))) == (409, 14)
    column.runner.finish(job).raise_for_status()
    assert code(column.runner.report_errors(job, failure(1))) == (409, 14)
    body = {"attempt": 1}
    path = f"/v1/runner/job/{job['id']}/error_rows"
    assert code(column.server.post(path, body)) == (409, 14)
    assert code(column.runner.report_errors(job | {"id": "none"}, failure(1))) == (404, 10)
    assert listed(column)["records"] == []


@pytest.mark.parametrize(
    "errors",
    [
        [failure(-1)],
        [failure(2**64)],
        [failure(1, at=10**18)],
        [failure(1, fragment=2**63)],
        [{"row_id": 1}],
        [failure(n) for n in range(1001)],
    ],
)
def test_errors_that_cannot_be_noted_are_refused(
    column: Column, errors: list[dict[str, Any]]
) -> None:
    job = lease(column)
    assert code(column.runner.report_errors(job, *errors)) == (400, 13)


def test_a_listing_has_the_newest_first_and_says_what_it_left_out(column: Column) -> None:
    job = lease(column)
    now = int(time.time() * 1000)
    errors = [failure(n, fragment=n // 4, at=now + n) for n in range(10)]
    column.runner.report_errors(job, *errors).raise_for_status()
    found = listed(column, limit=4)
    assert (rows_of(found), found["truncated"]) == ([9, 8, 7, 6], True)
    assert found["fragments"] == [
        {"job_id": job["id"], "fragment_id": 0, "rows_skipped": 4, "rows_recorded": 0},
        {"job_id": job["id"], "fragment_id": 1, "rows_skipped": 4, "rows_recorded": 2},
    ]
    found = listed(column, limit=10)
    assert (len(found["records"]), found["fragments"], found["truncated"]) == (10, [], False)
    assert code(column.ask("errors", {"limit": 0})) == (400, 13)


def test_a_listing_is_narrowed_by_column_job_and_branch(column: Column) -> None:
    first = lease(column)
    column.runner.report_errors(first, failure(1)).raise_for_status()
    column.runner.finish(first).raise_for_status()
    second = lease(column)
    column.runner.report_errors(second, failure(1), failure(2)).raise_for_status()
    assert len(listed(column)["records"]) == 3
    assert rows_of(listed(column, job_id=first["id"])) == [1]
    assert len(listed(column, column="len")["records"]) == 3
    assert listed(column, column="o'ther")["records"] == []
    assert listed(column, branch="dev")["records"] == []
    assert len(listed(column, branch="main")["records"]) == 3
    other = make_column(column.server, column.cluster)
    assert listed(other)["records"] == []


def test_the_rows_of_a_column_stay_known_to_its_next_jobs(column: Column) -> None:
    first = lease(column)
    assert column.runner.error_rows(first) == []
    column.runner.report_errors(first, failure(2), failure(2**64 - 1, offset=0)).raise_for_status()
    column.runner.finish(first, "FAILED", error="too many").raise_for_status()
    assert column.runner.error_rows(lease(column)) == [2, 2**64 - 1]


def halves(rows: Any) -> Any:
    return rows


def test_the_errors_of_a_function_belong_to_all_its_columns(column: Column) -> None:
    both = virtual_column(halves, ["text"], {"head": "utf8", "tail": "utf8"}, "batch")
    column.ask("add_columns", {"new_columns": [new_column(both)]}).raise_for_status()
    column.request(column="tail")
    (job,) = column.runner.lease()
    column.runner.report_errors(job, failure(1)).raise_for_status()
    for name in ("head", "tail"):
        (record,) = listed(column, column=name)["records"]
        assert (record["column"], record["columns"]) == ("head", ["head", "tail"])
        assert (record["function"], record["function_version"]) == ("halves", "1")
    column.runner.finish(job).raise_for_status()
    column.request(column="head", errors_only=True)
    (job,) = column.runner.lease()
    assert column.runner.error_rows(job) == [1]


def test_lancedb_reads_the_errors(column: Column) -> None:
    job = lease(column)
    old, new = failure(2, fragment=3, at=1_700_000_000_000), failure(1)
    column.runner.report_errors(job, old, new).raise_for_status()
    namespace, name = column.table.split("$")
    db: Any = lancedb.connect("db://any", host_override=column.server.url, api_key="k")
    table = db.open_table(name, namespace_path=[namespace])
    found = table.function_errors(column="len", job_id=job["id"], limit=1)
    (record,) = found.records
    assert (record.error_type, record.error_message) == ("ValueError", "not a number")
    assert (record.fragment_id, record.row_offset, record.column) == (0, 1, "len")
    assert (found.truncated, found.fragments[0].rows_skipped) == (True, 1)
    assert len(table.function_errors().records) == 2


def test_the_ledger_is_a_table_like_any_other(column: Column) -> None:
    job = lease(column)
    column.runner.report_errors(job, failure(1)).raise_for_status()
    server = column.server
    assert "errors" in server.get("/v1/namespace/__system/table/list").json()["tables"]
    assert "__system" in server.get("/v1/namespace/$/list").json()["namespaces"]
    body = {"predicate": f"job_id = '{job['id']}'"}
    assert server.post(f"/v1/table/{LEDGER}/count_rows", body).json() == 1
    found = server.post(f"/v1/table/{LEDGER}/describe", {"load_detailed_metadata": True}).json()
    assert "traceback" in [field["name"] for field in found["schema"]["fields"]]
    named = server.post(f"/v1/table/{LEDGER}/query", {"k": 1, "filter": body["predicate"]})
    assert named.status_code == 200


def test_only_the_server_writes_the_ledger(column: Column) -> None:
    column.runner.report_errors(lease(column), failure(1)).raise_for_status()
    server = column.server
    assert code(send(server, f"/v1/table/{LEDGER}/insert", people(1))) == (400, 19)
    assert code(send(server, f"/v1/table/{LEDGER}/create", people(1), mode="overwrite")) == (
        400,
        19,
    )
    for operation, body in {
        "delete": {"predicate": "true"},
        "update": {"updates": [["message", "''"]]},
        "drop_columns": {"columns": ["message"]},
        "restore": {"version": 1},
        "rename": {"new_table_name": "x"},
        "deregister": {},
        "version/create": {"version": 9, "manifest_path": "x"},
    }.items():
        assert code(server.post(f"/v1/table/{LEDGER}/{operation}", body)) == (400, 19), operation
    entry = {"id": ["__system", "errors"], "version": 9, "manifest_path": "x"}
    batches: dict[str, Any] = {
        "version/batch-create": {"entries": [entry]},
        "batch-commit": {"operations": [{"deregister_table": {"id": ["__system", "errors"]}}]},
    }
    for path, batch in batches.items():
        assert code(server.post(f"/v1/table/{path}", batch)) == (400, 19)


def test_the_namespace_of_the_ledger_stays(column: Column) -> None:
    column.runner.report_errors(lease(column), failure(1)).raise_for_status()
    server = column.server
    body = {"behavior": "Cascade"}
    assert code(server.post("/v1/namespace/__system/drop", body)) == (400, 13)
    assert code(server.post("/v1/namespace/__system/create", {"mode": "Overwrite"})) == (400, 13)


def attempt_at(column: Column) -> LeasedAttempt:
    job = lease(column)
    client = ServerClient(column.server.url)
    names = ("id", "kind", "attempt", "spec", "cluster", "lease_seconds", "heartbeat_seconds")
    return LeasedAttempt(client, Lease(**{name: job[name] for name in names}))


def row_error(row_id: int, traceback: str = "") -> RowError:
    return RowError(**(failure(row_id) | {"traceback": traceback}))


def test_an_attempt_sends_any_number_of_errors(column: Column) -> None:
    attempt = attempt_at(column)
    attempt.errors([row_error(n) for n in range(1200)])
    attempt.errors([row_error(1200 + n, "x" * 900_000) for n in range(5)])
    attempt.errors([])
    assert attempt.error_rows() == frozenset(range(1205))
    (longest,) = [r for r in listed(column, limit=2000)["records"] if r["row_id"] == 1204]
    assert len(longest["traceback"]) < 20_000


def test_an_attempt_that_lost_its_job_hears_so(column: Column) -> None:
    attempt = attempt_at(column)
    cancel(column.server, attempt.job).raise_for_status()
    job = {"id": attempt.job, "attempt": 1}
    column.runner.finish(job, "CANCELED").raise_for_status()
    with pytest.raises(LeaseLost):
        attempt.errors([row_error(1)])
    with pytest.raises(LeaseLost):
        attempt.check()


@pytest.fixture(params=KINDS)
def forgetful(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server that keeps no history of jobs."""
    database = database_of(request)
    environ = {
        "PENSTOCK__JOBS__HISTORY_DAYS": "1",
        "PENSTOCK__CATALOG__MAINTAIN_SECONDS": "1",
        "PENSTOCK__CLUSTERS": '{"c0": {"master": "local[1]"}}',
    }
    data = tmp_path_factory.mktemp("data")
    with servers.running(data, database=database, environ=environ) as started:
        yield started


@pytest.mark.slow
def test_entries_older_than_the_history_are_forgotten(forgetful: Server) -> None:
    column = make_column(forgetful, "c0")
    now = int(time.time() * 1000)
    old = [failure(n, at=now - 2 * 86_400_000) for n in (1, 2)]
    column.runner.report_errors(lease(column), *old, failure(3)).raise_for_status()
    until(lambda: rows_of(listed(column)) == [3])
    versions = forgetful.post(f"/v1/table/{LEDGER}/version/list").json()["versions"]
    assert len(versions) == 3
