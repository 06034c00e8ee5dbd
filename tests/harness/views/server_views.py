"""Materialized views as tests speak of them, with a test that acts as their runner."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import lance
import msgspec
import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import decode_spec, get_kind
from penstock.lance.session.remote import RemoteCatalog
from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.jobs.fake_runner import TEXTS, Runner, make_table
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.processes.servers import Server

QUERY = "SELECT id, text FROM t WHERE id > 1"


@dataclass(frozen=True)
class View:
    """A view of a table on a running server, with a cluster of its own."""

    server: Server
    source: str
    id: str
    cluster: str

    @property
    def namespace(self) -> str:
        return self.id.split("$")[0]

    @property
    def runner(self) -> Runner:
        return Runner(self.server, self.cluster)

    def ask(self, operation: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.server.post(f"/v1/materialized_view/{self.id}/{operation}", body, **params)

    def ask_table(self, operation: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.server.post(f"/v1/table/{self.id}/{operation}", body, **params)

    def tell(self) -> dict[str, str]:
        """What the description of the view's table says of it."""
        found = self.ask_table("describe").raise_for_status().json()["properties"]
        return {key.removeprefix("penstock."): value for key, value in found.items()}

    def request(self, **body: Any) -> str:
        """Request a refresh, which must work; returns the job."""
        answer = self.ask("refresh", {"cluster": self.cluster} | body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])

    def lease(self) -> dict[str, Any]:
        (job,) = self.runner.lease()
        return job

    def finish(self, job: dict[str, Any], **result: Any) -> None:
        """End a job as one that brought the view to the newest version of its table."""
        version = head(self.server, self.source)
        source = job["spec"]["definition"]["sources"][0]
        watermark = {"versions": {source["id"]: version}, "digest": "d", "view_version": 2}
        told = {
            "version": 2,
            "mode": "full",
            "reason": "the first refresh",
            "rows_inserted": 2,
            "source_versions": {self.source: version},
            "watermark": watermark,
        }
        self.runner.finish(job, result=told | result).raise_for_status()

    def refresh(self) -> None:
        """Request a refresh and end it."""
        self.request()
        self.finish(self.lease())

    def work(self) -> str:
        """Lease a job and carry it out here, by the product's recipe and without Spark."""
        job = self.lease()
        run_here(self.server, job)
        return str(job["id"])

    def work_all(self) -> None:
        """Refresh the view, and carry that out."""
        self.request()
        self.work()

    def alter(self, **body: Any) -> httpx.Response:
        return self.ask("alter", {"cluster": self.cluster} | body)

    def rows(self) -> list[tuple[Any, ...]]:
        """What readers see, without system columns."""
        # Asked first: a version that a dead server left is finished then.
        version = head(self.server, self.id)
        table = lance.dataset(self.ask_table("describe").json()["location"], version=version)
        names = [name for name in table.schema.names if not name.startswith("__")]
        found = table.to_table(names).to_pylist()
        return sorted(tuple(row.values()) for row in found)

    def insert(self) -> None:
        send(self.server, f"/v1/table/{self.source}/insert", TEXTS).raise_for_status()


def run_here(
    server: Server,
    job: dict[str, Any],
    on_fence: Callable[[], None] = lambda: None,
    engine: Engine = LOCAL_ENGINE,
) -> dict[str, Any]:
    """Carry out a leased job in the test's process, and report it; returns its result.

    `on_fence` is called before each commit.
    """
    spec = decode_spec(job["kind"], msgspec.json.encode(job["spec"]))
    runner = Runner(server)
    attempt = HeldAttempt(
        job=job["id"],
        number=job["attempt"],
        on_fence=on_fence,
        find_obstacle=lambda: runner.report(job).raise_for_status().json()["obstacle"],
    )
    run = get_kind(job["kind"]).load_recipe().run
    done = run(spec, RemoteCatalog(server.url), lambda of=None: engine, attempt)
    result: dict[str, Any] = msgspec.to_builtins(done)
    runner.finish(job, result=result).raise_for_status()
    return result


def ask_create(server: Server, id: str, **body: Any) -> httpx.Response:
    whole = {"kind": "query", "source_query": QUERY} | body
    return server.post(f"/v1/materialized_view/{id}/create", whole)


def make_view(server: Server, cluster: str, **body: Any) -> View:
    """A view of a new table with three texts."""
    source = make_table(server)
    id = f"{source.split('$')[0]}$v"
    answer = ask_create(server, id, **{"cluster": cluster} | body)
    assert answer.status_code == 201, answer.text
    return View(server, source, id, cluster)


def make_iceberg_view(server: Server, namespace: str, name: str, sql: str, **others: str) -> None:
    """An Iceberg view in Spark's dialect, and in others, whose names are those of its namespace."""
    request = iceberg.create(namespace, name, sql)
    version = request.body["view-version"]
    version["default-namespace"] = [namespace]
    version["representations"] += [
        {"type": "sql", "dialect": dialect, "sql": text} for dialect, text in others.items()
    ]
    request.send(server).raise_for_status()


def head(server: Server, table: str) -> int:
    """The newest version of a table."""
    path = f"/v1/table/{table}/version/list?descending=true&limit=1"
    return int(server.post(path).raise_for_status().json()["versions"][0]["version"])


def tag_of(view: View) -> str:
    """What keeps version 1 of a table for a view."""
    table_id = view.ask_table("describe").json()["location"].rpartition("-")[2]
    return f"penstock-backfill-view-{table_id.removesuffix('.lance')[:16]}-1"


def commit_rows(namespace: Any, id: str, **properties: str) -> lance.LanceDataset:
    """Commit a row to a view as a refresh does, by way of the catalog."""
    target: Any = {"namespace_client": namespace, "table_id": id.split("$")}
    dataset = lance.dataset(**target)
    schema = dataset.schema
    rows = pa.table({f.name: pa.nulls(1, f.type) for f in schema}, schema=schema)
    fragments = lance.fragment.write_fragments(rows, dataset.uri, mode="append", schema=schema)
    operation = lance.LanceOperation.Update([], [], list(fragments), [])
    transaction = lance.Transaction(dataset.version, operation, transaction_properties=properties)
    return lance.LanceDataset.commit(
        dataset, transaction, namespace_client_managed_versioning=True, **target
    )
