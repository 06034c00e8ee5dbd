"""Statements: whose rows they read, and what they tell of the others."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import httpx
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.jobs.statements import ROWS, read_rows, send_result
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS
from tests.server.access.conftest import CLUSTER


@dataclass
class Place:
    """A namespace with the tables `open`, which ann may read, and `shut`, which she may not."""

    gate: GuardedServer
    admin: Server
    ns: str
    ann: Person

    def ask(self, who: Person, sql: str, **body: object) -> httpx.Response:
        return who.ask("sql", {"sql": sql, "namespace": [self.ns], **body})


@pytest.fixture
def place(gate: GuardedServer) -> Place:
    admin, ann, ns = gate.admin(), person(gate), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    for table in ("open", "shut"):
        send(admin, f"/v1/table/{ns}${table}/create", people(1, 2)).raise_for_status()
    gate.grant(ann.name, "reader", "table", ns, "open")
    return Place(gate, admin, ns, ann)


def test_a_statement_reads_what_its_caller_may_read(place: Place) -> None:
    assert read_rows(place.ask(place.ann, "SELECT id FROM open")).num_rows == 2
    words = []
    for table in ("shut", "none"):
        for sql in (
            f"SELECT id FROM {table}",
            f"SELECT o.id FROM open o JOIN {table} s ON o.id = s.id",
            f"SELECT id FROM open WHERE id IN (SELECT id FROM {place.ns}.{table})",
            f"SELECT count(*) FROM {table}",
        ):
            refused = place.ask(place.ann, sql)
            assert refused.status_code == 400
            said = refused.json()
            words.append(f"{said['error']} {said['detail']}".replace(table, "TABLE"))
    # What may not be read is told in the very words for what is not there.
    assert [w.partition("(line")[0] for w in words[:4]] == [
        w.partition("(line")[0] for w in words[4:]
    ]


def test_a_view_shows_no_table_that_its_reader_may_not_read(place: Place) -> None:
    made = views.create(place.ns, "through", "SELECT id FROM shut")
    made.body["view-version"]["default-namespace"] = [place.ns]
    made.send(place.admin).raise_for_status()
    place.gate.grant(place.ann.name, "reader", "view", place.ns, "through")
    refused = place.ask(place.ann, "SELECT id FROM through")
    assert refused.status_code == 400, refused.text
    place.gate.grant(place.ann.name, "reader", "table", place.ns, "shut")
    # Now it would be read, if there were a runner; other tests may have played one lately.
    allowed = place.ask(place.ann, "SELECT id FROM through", timeout_seconds=0.2)
    assert allowed.status_code in (503, 504), allowed.text


def test_nobody_else_runs_statements(place: Place) -> None:
    body = {"sql": "SELECT id FROM open", "namespace": [place.ns]}
    assert place.gate.server.post("/v1/sql", body).status_code == 401
    key = place.gate.key("r", kind="runner", clusters=(CLUSTER,))
    assert place.gate.as_(key).post("/v1/sql", body).status_code == 403
    assert place.ask(person(place.gate), "SELECT id FROM open").status_code == 400


def test_a_runner_reads_the_tables_of_its_statement_and_sends_its_result(place: Place) -> None:
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)
    other = place.gate.as_(place.gate.key("other", kind="runner", clusters=(CLUSTER,)))
    open_, shut = (f"/v1/table/{place.ns}${name}/describe" for name in ("open", "shut"))
    assert runner.server.post(open_).status_code == 404
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(place.ask, place.ann, "SELECT max(id) AS n FROM open", cluster=CLUSTER)
        (job,) = runner.lease(wait_seconds=20)
        assert runner.server.post(open_).status_code == 200
        assert runner.server.post(shut).status_code == 404
        insert = send(runner.server, f"/v1/table/{place.ns}$open/insert", people(3))
        assert insert.status_code in (403, 404)
        for wrong in (other, place.admin):
            assert send_result(wrong, job).status_code in (403, 404)
        # Its caller, who reads no more than a table, does not even see the job.
        told = place.ann.ask("jobs/describe", {"job_id": job["id"]})
        assert told.status_code == 404
        send_result(runner.server, job).raise_for_status()
        runner.finish(job, result={"rows": 3}).raise_for_status()
        assert read_rows(answer.result(PATIENCE_SECONDS)) == ROWS
    assert runner.server.post(open_).status_code == 404


@pytest.mark.parametrize("what", ["grant", "view's table", "key", "table"])
def test_rights_that_end_while_a_statement_runs_keep_its_rows(place: Place, what: str) -> None:
    made = views.create(place.ns, "through", "SELECT id FROM open")
    made.body["view-version"]["default-namespace"] = [place.ns]
    made.send(place.admin).raise_for_status()
    place.gate.grant(place.ann.name, "reader", "view", place.ns, "through")
    source = "open" if what in ("grant", "table") else "through"
    key = place.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(place.gate.as_(key), CLUSTER)
    anns, secret = place.gate.make_key(place.ann.name)
    ann = Person(place.gate, place.ann.name, place.gate.as_(secret))
    with ThreadPoolExecutor(1) as pool:
        sql = f"SELECT max(id) AS n FROM {source}"
        answer = pool.submit(place.ask, ann, sql, cluster=CLUSTER)
        (job,) = runner.lease(wait_seconds=20)
        send_result(runner.server, job).raise_for_status()
        if what == "key":
            place.gate.revoke(anns.id)
        elif what == "table":
            allowed = place.admin.post(f"/v1/table/{place.ns}$open/drop", force=True)
            allowed.raise_for_status()
            send(place.admin, f"/v1/table/{place.ns}$open/create", people(1)).raise_for_status()
        else:
            place.gate.ungrant(place.ann.name, "reader", "table", place.ns, "open")
        runner.finish(job, result={"rows": 3}).raise_for_status()
        refused = answer.result(PATIENCE_SECONDS)
    assert refused.status_code == (403 if what == "key" else 400), refused.text
    assert "taken away" in refused.json()["error"]
    assert not list(place.admin.data.rglob("_results/*"))
