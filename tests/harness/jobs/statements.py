"""Statements as tests ask for them, with a test that acts as the runner."""

import io
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa

from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server

ROWS = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
# What only Spark answers.
GROUPED = "SELECT count(*) AS n FROM t GROUP BY text"


def ask_sql(server: Server, namespace: str | None, sql: str, **body: Any) -> httpx.Response:
    whole = {"sql": sql, "namespace": [namespace] if namespace else None} | body
    return server.client.post("/v1/sql", json=whole, timeout=300)


def read_rows(answer: httpx.Response) -> pa.Table:
    """The rows of an answer, which must be some."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/vnd.apache.arrow.file"
    return pa.ipc.open_file(io.BytesIO(answer.content)).read_all()


def ask_and_lease(
    server: Server, namespace: str, cluster: str, sql: str = GROUPED, **body: Any
) -> "tuple[Future[httpx.Response], dict[str, Any]]":
    """Ask for a statement, which waits, and lease its job."""
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(ask_sql, server, namespace, sql, cluster=cluster, **body)
    pool.shutdown(wait=False)
    (job,) = Runner(server, cluster).lease(wait_seconds=50)
    return answer, job


def send_result(
    server: Server, job: dict[str, Any], content: bytes | None = None, attempt: Any = None
) -> httpx.Response:
    path = f"/v1/runner/job/{job['id']}/result"
    params = {"attempt": job["attempt"] if attempt is None else attempt}
    return server.client.post(path, content=content or to_stream(ROWS), params=params, timeout=60)


def to_stream(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()
