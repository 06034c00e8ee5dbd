"""Jobs as tests speak of them: tables with computed columns, and a test that acts as the runner."""

from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa

from tests.harness.data.arrow import send
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server

# Each test leases from a cluster of its own, so that tests can share a server.
CLUSTERS = {f"c{n}": {"master": "local[1]"} for n in range(800)}

TEXTS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "text": ["a", "bb", "ccc"]})


@dataclass(frozen=True)
class Runner:
    """A runner, played by the test over HTTP."""

    server: Server
    cluster: str | None = None
    name: str = "tester"

    def lease(self, free: int = 1, wait_seconds: float = 0) -> list[dict[str, Any]]:
        """Lease what is there, which must work."""
        answer = self.ask_lease(free, wait_seconds)
        assert answer.status_code == 200, answer.text
        jobs: list[dict[str, Any]] = answer.json()["jobs"]
        return jobs

    def ask_lease(self, free: int = 1, wait_seconds: float = 0) -> httpx.Response:
        clusters = None if self.cluster is None else [self.cluster]
        body = {
            "runner": self.name,
            "clusters": clusters,
            "free": free,
            "wait_seconds": wait_seconds,
        }
        return self.server.client.post("/v1/runner/lease", json=body, timeout=60)

    def report(self, job: dict[str, Any], **body: Any) -> httpx.Response:
        body = {"attempt": job["attempt"]} | body
        return self.server.post(f"/v1/runner/job/{job['id']}/heartbeat", body)

    def report_errors(self, job: dict[str, Any], *errors: dict[str, Any]) -> httpx.Response:
        body = {"attempt": job["attempt"], "errors": errors}
        return self.server.post(f"/v1/runner/job/{job['id']}/errors", body)

    def error_rows(self, job: dict[str, Any]) -> list[int]:
        body = {"attempt": job["attempt"]}
        answer = self.server.post(f"/v1/runner/job/{job['id']}/error_rows", body)
        rows: list[int] = answer.raise_for_status().json()["rows"]
        return rows

    def finish(self, job: dict[str, Any], state: str = "SUCCEEDED", **body: Any) -> httpx.Response:
        body = {"attempt": job["attempt"], "state": state} | body
        return self.server.post(f"/v1/runner/job/{job['id']}/finish", body)


@dataclass(frozen=True)
class Column:
    """A computed column of a table on a running server, with a cluster of its own."""

    server: Server
    table: str
    name: str
    cluster: str

    @property
    def runner(self) -> Runner:
        return Runner(self.server, self.cluster)

    def ask(self, operation: str, body: Any = None) -> httpx.Response:
        return self.server.post(f"/v1/table/{self.table}/{operation}", body)

    def ask_backfill(self, **body: Any) -> httpx.Response:
        return self.ask("backfill_column", {"column": self.name, "cluster": self.cluster} | body)

    def request(self, **body: Any) -> str:
        """Request a backfill, which must work; returns the job."""
        answer = self.ask_backfill(**body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])


def describe(server: Server, id: str) -> dict[str, Any]:
    """A job's properties, with its status among them."""
    answer = server.post(f"/v1/transaction/{id}/describe")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return {"status": found["status"], **found["properties"]}


def cancel(server: Server, id: str) -> httpx.Response:
    action = {"setStatusAction": {"status": "Canceled"}}
    return server.post(f"/v1/transaction/{id}/alter", {"actions": [action]})


def make_table(server: Server, rows: pa.Table = TEXTS) -> str:
    """A new table with rows, made through the server; returns its id."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    send(server, f"/v1/table/{namespace}$t/create", rows).raise_for_status()
    return f"{namespace}$t"


def add_computed(server: Server, table: str, branch: str = "", **columns: str) -> httpx.Response:
    new = [{"name": name, "computed": sql} for name, sql in columns.items()]
    body = {"new_columns": new, "branch": branch or None}
    return server.post(f"/v1/table/{table}/add_columns", body)


def make_column(server: Server, cluster: str, name: str = "len") -> Column:
    """A computed column of a new table."""
    table = make_table(server)
    add_computed(server, table, **{name: "length(text)"}).raise_for_status()
    return Column(server, table, name, cluster)
