"""New functions of an alteration are tried on some rows first; the test is the runner."""

import base64
import http.client
import json
import uuid
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest

from tests.harness.clients.idempotency_keys import HEADER
from tests.harness.data.functions import envelope
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import describe
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS, until
from tests.harness.views.runner_views import split, to_base64, udtf_spec
from tests.harness.views.server_views import View, make_view, run_here

WORD = {"word": pa.string()}
FOUND = {"version": 1, "rows": 3, "seconds": 0.1, "failure": "", "detail": "", "untried": ""}


def chunker(function: Any = split, version: str = "1") -> dict[str, Any]:
    spec = udtf_spec("chunker", function, ["text"], WORD)
    return {"udtf_spec": spec | {"udtf_version": version}}


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    schema = to_base64({"id": pa.int64(), **WORD})
    return make_view(server, cluster, kind="chunker", output_schema=schema, **chunker())


def explode(text: str) -> Any:
    raise ValueError("boom")


def ask_and_lease(
    view: View, body: Any, key: str = ""
) -> "tuple[Future[httpx.Response], dict[str, Any]]":
    """Alter a view, which waits for its preview, and lease that."""
    pool = ThreadPoolExecutor(1)
    path = f"/v1/materialized_view/{view.id}/alter"
    headers = {HEADER: key} if key else {}
    answer = pool.submit(
        view.server.client.post, path, json={"cluster": view.cluster, **body}, headers=headers
    )
    pool.shutdown(wait=False)
    (job,) = view.runner.lease(wait_seconds=50)
    assert job["kind"] == "preview"
    return answer, job


def is_untouched(view: View) -> bool:
    (only,) = view.ask("history").json()["definitions"]
    return only["function"] == "f@1" and "altered_by_job" not in view.tell()


def test_a_function_that_fails_its_preview_is_400_and_nothing_changes(view: View) -> None:
    answer, job = ask_and_lease(view, chunker(explode, "2") | {"properties": {"team": "x"}})
    spec = job["spec"]
    assert (spec["column"], spec["rows"], spec["table"]) == ("word", 8, view.id.split("$"))
    assert spec["altered"]["definition"]["function"]["version"] == "2"
    # It has a slot of its own.
    refresh = view.request()
    run_here(view.server, job)
    refused = answer.result(PATIENCE_SECONDS)
    assert code(refused) == (400, 13)
    told = refused.json()
    assert "function f (version 2), which makes word" in told["error"]
    assert told["error"].endswith("ValueError: boom")
    assert "correct the function, or send preview as false" in told["detail"]
    assert is_untouched(view)
    assert "team" not in view.tell()
    assert view.lease()["id"] == refresh


def test_a_function_that_works_is_altered_by_the_job_that_follows(view: View) -> None:
    answer, job = ask_and_lease(view, chunker(version="2"))
    run_here(view.server, job)
    told = answer.result(PATIENCE_SECONDS)
    assert (told.status_code, told.json().get("not_previewed")) == (202, None), told.text
    assert view.work() == told.json()["job_id"]
    assert view.ask("history").json()["definitions"][0]["function"] == "f@2"
    assert view.rows() == [(2, "bb"), (3, "ccc")]


def measure(table: pa.Table) -> Any:
    return [{"size": sum(map(len, table["text"].to_pylist()))}]


def test_a_function_of_partitions_is_previewed_with_whole_ones(
    server: Server, cluster: str
) -> None:
    def udtf(function: Any, version: str) -> dict[str, Any]:
        made = {"size": pa.int64()}
        more = {"partition_by": "id", "udtf_version": version}
        return {"udtf_spec": udtf_spec("udtf", function, ["id", "text"], made, **more)}

    schema = to_base64({"size": pa.int64()})
    view = make_view(server, cluster, kind="udtf", output_schema=schema, **udtf(measure, "1"))
    answer, job = ask_and_lease(view, udtf(explode, "2"))
    run_here(server, job)
    told = answer.result(PATIENCE_SECONDS).json()["error"]
    assert "was given some partitions of the query" in told
    assert told.endswith("ValueError: boom")
    answer, job = ask_and_lease(view, udtf(measure, "3"))
    run_here(server, job)
    assert answer.result(PATIENCE_SECONDS).status_code == 202
    result = server.post("/v1/jobs/describe", {"job_id": job["id"]}).json()["result"]
    assert (result["rows"], result["failure"]) == (2, "")
    view.work()
    assert view.rows() == [(2,), (3,)]


def test_a_function_in_a_query_is_previewed(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)

    def with_size(function: Any) -> dict[str, Any]:
        udf = {"udf_payload": base64.b64decode(envelope(function)).decode()}
        column = {"output_name": "size", "input_columns": ["text"], "output_index": 1, "udf": udf}
        query = {"base": {"columns": ["id"]}, "source_table": "t", "column_udfs": [column]}
        schema = to_base64({"id": pa.int64(), "size": pa.int64()})
        return {"source_query": json.dumps(query), "output_schema": schema}

    answer, job = ask_and_lease(view, with_size(str.upper))
    run_here(server, job)
    told = answer.result(PATIENCE_SECONDS).json()["error"]
    assert "which makes size, was given some rows of the query and failed: TypeError" in told
    answer, job = ask_and_lease(view, with_size(len))
    run_here(server, job)
    assert answer.result(PATIENCE_SECONDS).status_code == 202, answer.result().text
    view.work()
    assert view.rows() == [(1, 1), (2, 2), (3, 3)]


def test_a_preview_that_its_runner_could_not_make_stops_nobody(view: View) -> None:
    answer, job = ask_and_lease(view, chunker(version="2"))
    view.runner.finish(job, "FAILED", error="Spark did not start", retryable=True)
    told = answer.result(PATIENCE_SECONDS)
    assert (told.status_code, told.json()["not_previewed"]) == (
        202, "the runner says: Spark did not start"
    )  # fmt: skip
    path = f"/v1/jobs/{told.json()['job_id']}/logs"
    assert told.json()["not_previewed"] in view.server.client.get(path).text


def test_a_query_that_spark_cannot_compute_is_told_in_the_names_of_its_author(view: View) -> None:
    answer, job = ask_and_lease(view, chunker(version="2"))
    name = job["spec"]["altered"]["definition"]["sources"][0]["name"]
    error = f"Spark cannot compute the query: {name} divides by zero; use try_divide"
    view.runner.finish(job, "FAILED", error=error).raise_for_status()
    refused = answer.result(PATIENCE_SECONDS)
    assert code(refused) == (400, 13)
    assert f"{view.source.replace('$', '.')} divides by zero" in refused.json()["error"]
    assert refused.json()["detail"] == "use try_divide"
    assert is_untouched(view)


def test_what_is_not_new_or_not_wanted_is_not_previewed(view: View) -> None:
    same = view.alter(source_query="SELECT id, text FROM t WHERE id > 2")
    assert same.status_code == 202
    view.work()
    assert view.alter(**chunker(explode, "2"), preview=False).status_code == 202
    assert view.lease()["kind"] == "refresh"
    # Refused before anybody waits.
    assert code(view.alter(**chunker(version="3"))) == (409, 19)
    assert view.runner.lease() == []


def test_a_caller_who_leaves_alters_nothing(view: View) -> None:
    def has_preview(status: str) -> bool:
        body = {"kind": "preview", "target": view.id}
        jobs = view.server.post("/v1/jobs/list", body).json()["jobs"]
        return [job["status"] for job in jobs] == [status]

    view.runner.lease()
    client = http.client.HTTPConnection(urlsplit(view.server.url).netloc)
    wanted = {"cluster": view.cluster, **chunker(version="2")}
    path = f"/v1/materialized_view/{view.id}/alter"
    client.request("POST", path, json.dumps(wanted), {"content-type": "application/json"})
    until(lambda: has_preview("QUEUED"))
    client.close()
    until(lambda: has_preview("CANCELED"))
    assert is_untouched(view)
    assert view.runner.lease() == []


def test_a_repeated_request_is_answered_without_another_preview(view: View) -> None:
    key, body = str(uuid.uuid4()), chunker(version="2")
    answer, job = ask_and_lease(view, body, key)
    view.runner.finish(job, result=FOUND | {"failure": "f failed: boom"}).raise_for_status()
    first = answer.result(PATIENCE_SECONDS)
    assert code(first) == (400, 13)

    def again(key: str) -> httpx.Response:
        path = f"/v1/materialized_view/{view.id}/alter"
        wanted = {"cluster": view.cluster, **body}
        return view.server.client.post(path, json=wanted, headers={HEADER: key})

    assert again(key).json()["error"] == first.json()["error"]
    assert view.runner.lease() == []
    other = str(uuid.uuid4())
    answer, job = ask_and_lease(view, body, other)
    view.runner.finish(job, result=FOUND).raise_for_status()
    made = answer.result(PATIENCE_SECONDS).json()["job_id"]
    assert again(other).json()["job_id"] == made
    assert [job["id"] for job in view.runner.lease(free=5)] == [made]


def test_without_a_runner_the_job_finds_out(tmp_path: Any) -> None:
    with servers.running(tmp_path) as lonely:
        schema = to_base64({"id": pa.int64(), **WORD})
        view = make_view(lonely, "local", kind="chunker", output_schema=schema, **chunker())
        told = view.alter(**chunker(explode, "2"))
        assert told.status_code == 202, told.text
        assert (
            told.json()["not_previewed"] == "no runner of cluster local asks this server for jobs"
        )
        (waiting,) = lonely.post("/v1/jobs/list", {"state": "in_progress"}).json()["jobs"]
        assert waiting["job_id"] == told.json()["job_id"]
        assert describe(lonely, waiting["job_id"])["status"] == "QUEUED"
