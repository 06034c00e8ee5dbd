"""A runner's key: worth what its jobs need while they run, and nothing else."""

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.access import tokens
from penstock.cli.operate.runner import forget_secrets
from penstock.server.iceberg.routes import ROUTES
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operations import OPERATIONS
from penstock.server.runner_api.child import list_session
from tests.harness.clients.lance_paths import fill_path
from tests.harness.data.arrow import people, send
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.access import GuardedServer, guarded, tls
from tests.harness.processes.servers import Server
from tests.server.access.conftest import CLUSTER


@dataclass
class Site:
    gate: GuardedServer
    admin: Server
    ns: str

    def runner(self) -> Runner:
        key = self.gate.key(f"r{uuid.uuid4().hex[:8]}", kind="runner", clusters=(CLUSTER,))
        return Runner(self.gate.as_(key), CLUSTER)

    def request(self, table: str) -> str:
        body = {"column": "double", "cluster": CLUSTER, "where": f"id > {time.time_ns()}"}
        answer = self.admin.post(f"/v1/table/{self.ns}${table}/backfill_column", body)
        assert answer.status_code == 202, answer.text
        return str(answer.json()["job_id"])


@pytest.fixture(scope="module")
def site(gate: GuardedServer) -> Site:
    admin, ns = gate.admin(), f"n{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    for table in ("a", "b"):
        send(admin, f"/v1/table/{ns}${table}/create", people(1)).raise_for_status()
        admin.post(f"/v1/table/{ns}${table}/add_columns", columns).raise_for_status()
    return Site(gate, admin, ns)


def test_only_a_runners_key_leases_jobs(site: Site) -> None:
    refused = Runner(site.admin, CLUSTER).ask_lease()
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert site.runner().ask_lease().status_code == 200


def test_a_key_leases_jobs_of_its_own_clusters_only(site: Site) -> None:
    job = site.request("a")
    elsewhere = site.gate.key("elsewhere", kind="runner", clusters=("local", "prod"))
    before = site.gate.key("before", kind="runner")
    for key in (elsewhere, before):
        for cluster in (CLUSTER, f"{CLUSTER}-unknown"):
            refused = Runner(site.gate.as_(key), cluster).ask_lease()
            assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
            assert "this key is for jobs of local" in refused.json()["error"]
        # Whoever names no cluster gets jobs of its own, and never this one.
        leased = Runner(site.gate.as_(key), None).lease(free=64)
        assert job not in [each["id"] for each in leased]
        for each in leased:
            Runner(site.gate.as_(key)).finish(each, "QUEUED").raise_for_status()
        assert Runner(site.gate.as_(key), "local").ask_lease().status_code == 200
    runner = Runner(site.runner().server, None)
    (own,) = runner.lease()
    assert (own["id"], own["cluster"]) == (job, CLUSTER)
    runner.finish(own).raise_for_status()


def test_a_runner_has_rights_on_the_table_of_its_job_while_it_holds_it(site: Site) -> None:
    runner, table = site.runner(), f"{site.ns}$a"

    def status(operation: str, body: Any = None, of: str = table) -> int:
        return runner.server.post(f"/v1/table/{of}/{operation}", body).status_code

    assert status("describe") == 404
    site.request("a")
    (job,) = runner.lease()
    assert status("describe") == 200
    assert status("version/list") == 200
    assert status("version/create", {"version": "x"}) == 400
    # Neither what an owner may, nor anything of others.
    assert status("drop") == 403
    assert status("add_columns", {"new_columns": []}) == 403
    assert status("describe", of=f"{site.ns}$b") == 404
    for path in other_requests(table, job["id"]):
        answer = runner.server.client.request(*path)
        assert answer.status_code == 403, path
        assert "a runner's key leases jobs" in answer.text
    assert runner.report(job, progress={}).status_code == 200
    assert runner.finish(job).status_code == 200
    assert status("describe") == 404


def other_requests(table: str, job: str) -> list[tuple[str, str]]:
    """Everything that a runner has no business with, about the table and the job it holds."""
    found = []
    for operation in (*OPERATIONS, *EXTENSIONS):
        if not operation.path.startswith("runner/") and operation.name not in A_RUNNER_NEEDS:
            is_job = operation.path.startswith("jobs/")
            path = fill_path(operation.path, job if is_job else table)
            found.append((operation.method, f"/v1/{path}"))
    namespace = table.partition("$")[0]
    for route in ROUTES:
        if route.name not in ("GetToken", "LoadView"):
            path = route.path.replace("{namespace}", namespace)
            path = path.replace("{view}", "v").replace("{table}", "t")
            found.append((route.method, f"/iceberg/v1/{path}"))
    return [each for each in found if each[0] != "HEAD"]


A_RUNNER_NEEDS = {
    *("DescribeTable", "ListTableVersions", "DescribeTableVersion", "CreateTableVersion"),
    *("TableExists", "BatchCreateTableVersions"),
}


def test_a_runner_reports_on_its_own_jobs_only(site: Site) -> None:
    first, second = site.runner(), site.runner()
    site.request("b")
    (job,) = first.lease()
    for answer in (second.report(job, progress={}), second.finish(job)):
        assert (answer.status_code, answer.json()["code"]) == (404, 10)
    assert first.finish(job).status_code == 200


def test_grants_to_a_runners_name_give_its_key_nothing(site: Site) -> None:
    key = site.gate.key("rex", kind="runner")
    site.gate.grant("rex", "owner")
    assert site.gate.ask(f"/v1/table/{site.ns}$a/describe", key).status_code == 404


def test_spark_inherits_nothing_of_ours() -> None:
    environ = {
        "PENSTOCK_TOKEN": "a",
        "PENSTOCK__DATABASE__URL": "b",
        "PENSTOCK_CONFIG": "c",
        "PATH": "d",
    }
    forget_secrets(environ)
    assert environ == {"PATH": "d"}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("is_encrypted", [False, True])
def test_the_servers_own_runner_works_with_a_key_that_nobody_else_sees(
    tmp_path: Path, is_encrypted: bool
) -> None:
    secret = {"PENSTOCK__STORAGE__OPTIONS": "some_secret=swordfish", "PENSTOCK_TOKEN": "mine"}
    if is_encrypted:
        secret |= tls(tmp_path)
    with guarded(tmp_path / "data", runner=True, environ=secret) as gate:
        admin = gate.admin()
        admin.post("/v1/namespace/n/create").raise_for_status()
        send(admin, "/v1/table/n$t/create", people(1, 2)).raise_for_status()
        columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
        admin.post("/v1/table/n$t/add_columns", columns).raise_for_status()
        job = admin.post("/v1/table/n$t/backfill_column", {"column": "double"}).json()["job_id"]
        deadline = time.monotonic() + 200
        while True:
            found = admin.post(f"/v1/transaction/{job}/describe").json()
            if found["status"] not in ("QUEUED", "RUNNING"):
                break
            assert time.monotonic() < deadline, gate.server.output()
            time.sleep(0.2)
        assert found["status"] == "SUCCEEDED", found
        (key,) = gate.work(lambda database: tokens.list_tokens(database, "runner"))
        shown = show_processes(gate.server.process.pid)
        assert len(shown) >= 2
        for name, text in shown.items():
            assert "pstk_" not in text, name
        (jvm,) = [text for name, text in shown.items() if "java" in name]
        assert "PENSTOCK" not in jvm
        assert "swordfish" not in jvm
    (gone,) = gate.work(lambda database: tokens.list_tokens(database, "runner"))
    assert gone.id == key.id
    assert gone.revoked_at is not None


def show_processes(server: int) -> dict[str, str]:
    """Command line and environment of everything that a server's runner has started."""
    children = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and parent_of(entry) == server
    ]
    found = {}
    for child in children:
        for pid in list_session(child):
            folder = Path("/proc") / str(pid)
            name = os.path.basename(os.readlink(folder / "exe"))
            parts = ((folder / part).read_bytes().decode(errors="replace") for part in PARTS)
            found[f"{name} {pid}"] = "\n".join(parts)
    return found


PARTS = ("cmdline", "environ")


def parent_of(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
