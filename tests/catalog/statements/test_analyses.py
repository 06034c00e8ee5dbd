"""Types that only Spark knows, as the server asks a runner for them."""

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa

from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Runner, make_table
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS
from tests.harness.views.definitions import encode_schema

QUERY = "SELECT id, split(text, ' ') AS words FROM t"
SCHEMA = encode_schema(pa.schema([("id", pa.int64()), ("words", pa.list_(pa.string()))]))


def ask_and_lease(
    server: Server, cluster: str, view: str, query: str = QUERY
) -> "tuple[Future[httpx.Response], dict[str, Any]]":
    """Create a view, which waits for its types, and lease the job that finds them."""
    body = {"kind": "query", "source_query": query, "cluster": cluster}
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(server.post, f"/v1/materialized_view/{view}/create", body)
    pool.shutdown(wait=False)
    (job,) = Runner(server, cluster).lease(wait_seconds=50)
    return answer, job


def view_beside(table: str) -> str:
    return table.replace("$t", "$v")


def test_a_runner_is_asked_for_types_that_only_spark_knows(server: Server, cluster: str) -> None:
    view = view_beside(make_table(server))
    answer, job = ask_and_lease(server, cluster, view)
    assert (job["kind"], list(job["spec"]["schemas"])) == ("analysis", ["source_1"])
    assert job["spec"]["sql"] == "SELECT id, split(text, ' ') AS words FROM `source_1` AS `t`"
    Runner(server, cluster).finish(job, result={"schema": SCHEMA}).raise_for_status()
    made = answer.result(PATIENCE_SECONDS)
    assert made.status_code == 201, made.text
    told = server.post(f"/v1/table/{view}/describe", {"load_detailed_metadata": True}).json()
    kinds = {each["name"]: each["type"]["type"] for each in told["schema"]["fields"]}
    assert kinds == {"__source_row_id": "int64", "id": "int64", "words": "list"}


def test_what_spark_refuses_is_told_with_the_names_of_the_query(
    server: Server, cluster: str
) -> None:
    table = make_table(server)
    answer, job = ask_and_lease(server, cluster, view_beside(table))
    error = "Spark cannot compute the query: `source_1`.`text` is wrong; cast it"
    Runner(server, cluster).finish(job, "FAILED", error=error).raise_for_status()
    refused = answer.result(PATIENCE_SECONDS)
    assert code(refused) == (400, 13)
    assert f"`{table.replace('$', '.')}`.`text` is wrong" in refused.json()["error"]
    assert refused.json()["detail"] == "cast it"
    assert server.post(f"/v1/table/{view_beside(table)}/describe").status_code == 404


def test_without_a_runner_the_answer_says_what_to_do(lonely: Server) -> None:
    view = view_beside(make_table(lonely))
    body = {"kind": "query", "source_query": QUERY}
    refused = lonely.post(f"/v1/materialized_view/{view}/create", body)
    assert code(refused) == (400, 13)
    assert "the type of column words is only known to Spark" in refused.json()["error"]
    detail = refused.json()["detail"]
    assert detail.startswith("start a runner")
    assert "output_schema" in detail
    # Nobody waits for the answer any more.
    waiting = lonely.post("/v1/jobs/list", {"state": "in_progress"}).json()
    assert waiting["jobs"] == []


def test_a_runner_that_fails_leaves_the_remedy_of_a_declared_schema(
    server: Server, cluster: str
) -> None:
    answer, job = ask_and_lease(server, cluster, view_beside(make_table(server)))
    report = {"error": "Spark did not start", "retryable": True}
    Runner(server, cluster).finish(job, "FAILED", **report).raise_for_status()
    refused = answer.result(PATIENCE_SECONDS)
    assert code(refused) == (400, 13)
    assert "the runner says: Spark did not start" in refused.json()["detail"]


def test_a_declared_schema_asks_nobody(server: Server, cluster: str) -> None:
    view = view_beside(make_table(server))
    body = {"kind": "query", "source_query": QUERY, "cluster": cluster, "output_schema": SCHEMA}
    server.post(f"/v1/materialized_view/{view}/create", body).raise_for_status()
    assert Runner(server, cluster).lease() == []
