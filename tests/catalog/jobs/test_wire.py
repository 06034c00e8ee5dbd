"""Jobs as transactions and as lancedb's client sees them."""

from typing import Any

import lancedb
import pyarrow as pa
import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.data.tables import code, new_name
from tests.harness.jobs.fake_runner import Column, cancel, describe
from tests.harness.processes.servers import Server


def alter(server: Server, id: str, *actions: Any) -> Any:
    return server.post(f"/v1/transaction/{id}/alter", {"actions": list(actions)})


def put(key: str, value: str) -> dict[str, Any]:
    return {"setPropertyAction": {"key": key, "value": value}}


def status(word: str) -> dict[str, Any]:
    return {"setStatusAction": {"status": word}}


@pytest.mark.parametrize("word", ["Running", "succeeded", "FAILED", "Queued", "Paused"])
def test_a_job_can_only_be_set_to_canceled(column: Column, word: str) -> None:
    id = column.request()
    assert code(alter(column.server, id, status(word))) == (400, 13)
    assert code(alter(column.server, id, put("a", "b"), status(word))) == (400, 13)
    found = describe(column.server, id)
    assert found["status"] == "QUEUED"
    assert "a" not in found


@pytest.mark.parametrize("word", ["Canceled", "CANCELED", "canceled"])
def test_any_spelling_cancels(column: Column, word: str) -> None:
    id = column.request()
    assert alter(column.server, id, status(word)).json()["status"] == "CANCELED"


def test_clients_keep_properties_on_a_job(column: Column) -> None:
    id = column.request()
    alter(column.server, id, put("owner", "me"), put("kind", "mine")).raise_for_status()
    found = describe(column.server, id)
    assert (found["owner"], found["kind"]) == ("me", "backfill")
    unset = {"unsetPropertyAction": {"key": "owner"}}
    alter(column.server, id, unset).raise_for_status()
    assert "owner" not in describe(column.server, id)


def test_the_id_may_be_led_by_the_tables_id(column: Column) -> None:
    id = column.request()
    assert describe(column.server, f"{column.table}${id}")["status"] == "QUEUED"


@pytest.mark.parametrize("path", ["describe", "cancel", "pause", "resume", "query_events"])
def test_an_unknown_job_is_said(server: Server, path: str) -> None:
    assert code(server.post(f"/v1/jobs/{path}", {"job_id": "none"})) == (404, 10)
    assert code(server.post(f"/v1/jobs/{path}", {"job_id": "\0"})) == (400, 13)
    assert code(server.post(f"/v1/jobs/{path}")) == (400, 13)


@pytest.mark.parametrize(
    ("state", "described", "listed"),
    [
        ("SUCCEEDED", "DONE", "succeeded"),
        ("FAILED", "FAILED", "failed"),
        ("CANCELED", "CANCELLED", "cancelled"),
    ],
)
def test_states_in_lancedbs_words(column: Column, state: str, described: str, listed: str) -> None:
    id = column.request()
    server = column.server
    assert server.post("/v1/jobs/describe", {"job_id": id}).json()["job_state"] == "IN_PROGRESS"
    (job,) = column.runner.lease()
    assert server.post("/v1/jobs/describe", {"job_id": id}).json()["job_state"] == "IN_PROGRESS"
    column.runner.finish(job, state, error="why").raise_for_status()
    assert server.post("/v1/jobs/describe", {"job_id": id}).json()["job_state"] == described
    (entry,) = server.post("/v1/jobs/list", {"target": column.table}).json()["jobs"]
    assert (entry["state"], entry["status"]) == (listed, state)
    assert (entry["table"], entry["job_type"]) == (column.table, "backfill")


def test_a_failure_is_described(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, "FAILED", error="division by zero").raise_for_status()
    found = column.server.post("/v1/jobs/describe", {"job_id": id}).json()
    assert found["failure"]["message"] == "division by zero"
    assert found["failure"]["retryable"] is False
    assert found["spec"]["expression"] == "length(text)"
    assert "result" not in found


def connect(server: Server) -> Any:
    return lancedb.connect("db://any", host_override=server.url, api_key="k")


def test_lancedb_follows_a_job(column: Column) -> None:
    db = connect(column.server)
    id = column.request()
    job = db.open_job(id)
    assert (job.id, job.state, job.job_type) == (id, "running", "backfill")
    assert id in [entry.job_id for entry in db.list_jobs()]
    (lease,) = column.runner.lease()
    column.runner.finish(lease, result={"version": 3}, progress={"rows_done": 3})
    assert job.status() == "finished"
    assert job.result["version"] == 3
    assert {entry.job_id: entry.state for entry in db.list_jobs()}[id] == "finished"


def test_lancedb_refreshes_a_column_and_waits(column: Column) -> None:
    namespace, name = column.table.split("$")
    table = connect(column.server).open_table(name, namespace_path=[namespace])
    job = table.refresh_column_async("len")
    (lease,) = [each for each in _lease_everything(column) if each["id"] == job.id]
    column.runner.finish(lease, result={"version": 3}, progress={"rows_done": 3})
    done = job.wait()
    assert (done.rows_assigned, done.rows_failed, done.published_version) == (3, 0, 3)


def test_the_generated_client_requests_follows_and_cancels(column: Column) -> None:
    client = Generated(column.server.url)
    request = models.AlterTableBackfillColumnsRequest(column="len", cluster=column.cluster)
    id = client.alter_table_backfill_columns(column.table, request).job_id
    assert client.describe_transaction(id, models.DescribeTransactionRequest()).status == "QUEUED"
    action = models.AlterTransactionAction(
        set_status_action=models.AlterTransactionSetStatus(status="Canceled")
    )
    request = models.AlterTransactionRequest(actions=[action])
    assert client.alter_transaction(id, request).status == "CANCELED"


def test_lancedb_declares_a_computed_column(column: Column) -> None:
    namespace, name = column.table.split("$")
    table = connect(column.server).open_table(name, namespace_path=[namespace])
    assert table.add_columns(computed={"up": "upper(text)"}).version == 3
    assert table.schema.field("up").type == pa.string()
    assert table.schema.field("up").metadata[b"computed_column.inputs"] == b'["text"]'
    assert table.version == 3


def test_lancedb_reads_tables_that_are_only_declared(server: Server) -> None:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    path = f"/v1/table/{namespace}$t"
    server.post(f"{path}/declare").raise_for_status()
    headers = {"x-lancedb-database": "any"}
    found = server.send(f"{path}/describe/", headers=headers).raise_for_status().json()
    assert found["is_only_declared"] is True


def _lease_everything(column: Column) -> list[dict[str, Any]]:
    """lancedb names no cluster, so its job goes to the default one."""
    body = {"runner": "r", "clusters": ["local"], "free": 64}
    found: list[dict[str, Any]] = column.server.post("/v1/runner/lease", body).json()["jobs"]
    return found


def test_lancedb_cancels(column: Column) -> None:
    db = connect(column.server)
    id = column.request()
    assert db.cancel_job(id) is True
    assert db.cancel_job(id) is True
    assert db.open_job(id).state == "cancelled"
    assert db.cancel_job("none") is False


def test_lancedb_reads_the_events(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    cancel(column.server, id).raise_for_status()
    column.runner.finish(job, "CANCELED", error="stopped").raise_for_status()
    handle = connect(column.server).open_job(id)
    states = handle.events()["state"].to_pylist()
    assert states == ["queued", "running", "cancel_requested", "canceled"]
    assert handle.events(filter="state = 'running'")["updated_by"].to_pylist() == ["tester"]
    assert handle.events(filter="state IN ('x', 'queued') OR message = 'stopped'").num_rows == 2
    assert handle.events(filter="state != 'queued' AND emitted_by = 'tester'").num_rows == 3
    assert handle.events(limit=1).num_rows == 1
    nothing = handle.events(filter="state = 'none'")
    assert (nothing.num_rows, "state" in nothing.column_names) == (0, True)


def test_events_of_several_jobs_come_in_one_stream(column: Column) -> None:
    ids = [column.request(), column.request(force=True)]
    body = {"job_ids": ids, "limit_per_job": 1}
    answer = column.server.post("/v1/jobs/query_events", body)
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.stream"
    assert pa.ipc.open_stream(answer.content).read_all()["job_id"].to_pylist() == ids


@pytest.mark.parametrize("text", ["state", "nope = 'x'", "state = 'x' AND", "state = 'x' x", "1"])
def test_a_filter_that_cannot_be_read_is_refused(column: Column, text: str) -> None:
    body = {"job_id": column.request(), "filter": text}
    assert code(column.server.post("/v1/jobs/query_events", body)) == (400, 13)
