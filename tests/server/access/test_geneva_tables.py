"""Tables in which Geneva's client looks for jobs: who makes them, and who sees which job."""

import uuid

import pyarrow as pa
import pytest

from tests.catalog.jobs.test_ledger import failure
from tests.harness.data.arrow import people, send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server
from tests.server.access.conftest import CLUSTER

JOBS, ERRORS = "__system$geneva_jobs", "__system$geneva_errors"


@pytest.fixture(autouse=True)
def system(gate: GuardedServer) -> None:
    """The namespace, which has to be there before somebody gets a role in it."""
    made = gate.admin().post("/v1/namespace/__system/create", {"mode": "ExistOk"})
    made.raise_for_status()


def person(gate: GuardedServer, *roles: tuple[str, ...]) -> Server:
    name = f"p{uuid.uuid4().hex[:8]}"
    for role, *on in roles:
        gate.grant(name, role, *on)
    return gate.as_(gate.key(name))


def told(who: Server, table: str, job: str) -> int:
    """How many rows of a job somebody is told."""
    answer = who.post(f"/v1/table/{table}/query", {"filter": f"job_id = '{job}'", "k": 10})
    assert answer.status_code == 200, answer.text
    return int(pa.ipc.open_file(answer.content).read_all().num_rows)


def test_owners_of_the_system_namespace_make_tables_in_it_and_own_no_more(
    gate: GuardedServer,
) -> None:
    table = f"__system$t{uuid.uuid4().hex[:8]}"
    assert person(gate).post(f"/v1/table/{table}/declare", {}).status_code in (403, 404)
    ann = person(gate, ("owner", "namespace", "__system"))
    ann.post(f"/v1/table/{table}/declare", {}).raise_for_status()
    bob = person(gate, ("reader", "namespace", "__system"))
    assert bob.post(f"/v1/table/{table}/describe", {}).status_code == 200
    assert code(bob.post(f"/v1/table/{table}/drop", {})) == (403, 15)


def test_everybody_is_told_of_the_jobs_that_they_may_see(gate: GuardedServer) -> None:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    send(admin, f"/v1/table/{ns}$a/create", people(1)).raise_for_status()
    columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    admin.post(f"/v1/table/{ns}$a/add_columns", columns).raise_for_status()
    for table in (JOBS, ERRORS):
        assert admin.post(f"/v1/table/{table}/declare", {}).status_code in (200, 409)
    body = {"column": "double", "cluster": CLUSTER}
    job = admin.post(f"/v1/table/{ns}$a/backfill_column", body).json()["job_id"]
    key = gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
    runner = Runner(gate.as_(key), CLUSTER)
    leased = next(each for each in runner.lease(8) if each["id"] == job)
    runner.report_errors(leased, failure(1)).raise_for_status()
    inside = ("reader", "namespace", "__system")
    stranger, reader = person(gate, inside), person(gate, inside, ("reader", "table", ns, "a"))
    for table in (JOBS, ERRORS):
        assert [told(who, table, job) for who in (admin, reader, stranger)] == [1, 1, 0]
    nobody = person(gate, ("reader", "table", ns, "a"))
    assert nobody.post(f"/v1/table/{JOBS}/query", {"k": 10}).status_code in (403, 404)
