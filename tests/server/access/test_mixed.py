"""Requests about several things at once: all are the caller's, or nothing happens or shows.

Each is asked about something that is there but hidden, and about something that is not: the answers
differ in nothing but the name.
"""

import itertools
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.data import tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server

COMPUTED = {"new_columns": [{"name": "double", "computed": "id * 2"}]}


@dataclass
class Two:
    """What is ann's, and what is somebody else's: a namespace each, with table, view and job."""

    gate: GuardedServer
    admin: Server
    ann: Person
    mine: str
    theirs: str
    jobs: dict[str, str]

    def state(self) -> Any:
        """All that a request could have changed."""
        found: list[Any] = []
        for ns in (self.mine, self.theirs):
            for table in self.admin.get(f"/v1/namespace/{ns}/table/list").json()["tables"]:
                versions = self.admin.post(f"/v1/table/{ns}${table}/version/list").json()
                found.append((ns, table, [each["version"] for each in versions["versions"]]))
            found.append(self.admin.get(f"/iceberg/v1/namespaces/{ns}/views").json())
            job = self.admin.post("/v1/jobs/describe", {"job_id": self.jobs[ns]}).json()
            found.append((job["job_state"], job.get("status")))
        return found


@pytest.fixture
def two(gate: GuardedServer) -> Two:
    admin, ann = gate.admin(), person(gate)
    mine, theirs = (f"n{uuid.uuid4().hex[:8]}" for _ in range(2))
    jobs = {}
    for ns in (mine, theirs):
        admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
        send(admin, f"/v1/table/{ns}$t/create", people(1, 2)).raise_for_status()
        admin.post(f"/v1/table/{ns}$t/add_columns", COMPUTED).raise_for_status()
        path = f"/v1/table/{ns}$t/backfill_column"
        jobs[ns] = admin.post(path, {"column": "double"}).json()["job_id"]
        views.create(ns, "v").send(admin).raise_for_status()
        tables.declare(admin, f"{ns}$d")
    gate.grant(ann.name, "owner", "namespace", mine)
    return Two(gate, admin, ann, mine, theirs, jobs)


# What one operation of a commit asks for, by the namespace it is about.
OPERATIONS: dict[str, Callable[[str], Any]] = {
    "declare_table": lambda ns: {"id": [ns, "new"]},
    "create_table_version": lambda ns: {"id": [ns, "d"], "version": 1, "manifest_path": "x"},
    "delete_table_versions": lambda ns: {
        "id": [ns, "t"],
        "ranges": [{"start_version": 1, "end_version": 2}],
    },
    "deregister_table": lambda ns: {"id": [ns, "d"]},
}


def commit(two: Two, *operations: tuple[str, str]) -> httpx.Response:
    asked = [{name: OPERATIONS[name](ns)} for name, ns in operations]
    return two.ann.ask("table/batch-commit", {"operations": asked})


def same(hidden: httpx.Response, absent: httpx.Response, names: tuple[str, str]) -> bool:
    told, other = ({**each.json(), "instance": ""} for each in (hidden, absent))
    return hidden.status_code == absent.status_code and str(told).replace(*names) == str(other)


@pytest.mark.parametrize("allowed", OPERATIONS)
def test_a_commit_with_one_forbidden_operation_does_nothing(two: Two, allowed: str) -> None:
    before, absent = two.state(), f"n{uuid.uuid4().hex[:8]}"
    for forbidden, is_first in itertools.product(OPERATIONS, (True, False)):

        def ask(ns: str, forbidden: str = forbidden, is_first: bool = is_first) -> httpx.Response:
            both = [(allowed, two.mine), (forbidden, ns)]
            return commit(two, *(reversed(both) if is_first else both))

        hidden = ask(two.theirs)
        assert (hidden.status_code, hidden.json()["code"]) == (404, 1), hidden.text
        assert same(hidden, ask(absent), (two.theirs, absent))
    two.gate.grant(two.ann.name, "reader", "namespace", two.theirs)
    for forbidden in OPERATIONS:
        refused = commit(two, (allowed, two.mine), (forbidden, two.theirs))
        assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
    assert two.state() == before


def test_versions_are_created_in_all_tables_or_in_none(two: Two) -> None:
    own, foreign = (tables.get_table(two.admin, f"{ns}$d") for ns in (two.mine, two.theirs))
    entries = [own.entry(1), foreign.entry(1)]
    path, before = "table/version/batch-create", two.state()
    for order in (entries, entries[::-1]):
        assert two.ann.ask(path, {"entries": order}).json()["code"] == 1
    absent = [entries[0], {**entries[1], "id": [two.theirs, "q"]}]
    for role, code in (("reader", 15), ("writer", 200)):
        assert two.state() == before
        # The staged files are still there for a request that may have them.
        assert [len(each.staged_files()) for each in (own, foreign)] == [1, 1]
        two.gate.grant(two.ann.name, role, "table", two.theirs, "d")
        answer = two.ann.ask(path, {"entries": entries})
        assert code in (answer.status_code, answer.json().get("code")), answer.text
        # A grant on one table shows no other of its namespace.
        assert two.ann.ask(path, {"entries": absent}).json()["code"] == 4
        hidden = [entries[0], {**entries[1], "id": [two.theirs, "t"]}]
        assert two.ann.ask(path, {"entries": hidden}).json()["code"] == 4


def test_a_path_and_a_body_that_name_different_tables_are_refused(two: Two) -> None:
    before = two.state()
    body = {"id": [two.theirs, "t"], "ranges": [{"start_version": 1, "end_version": 2}]}
    answer = two.ann.ask(f"table/{two.mine}$t/version/delete", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    hidden = two.ann.ask(f"table/{two.theirs}$t/version/delete", {**body, "id": [two.mine, "t"]})
    assert (hidden.status_code, hidden.json()["code"]) == (404, 1)
    assert two.state() == before


@pytest.mark.parametrize("operation", ["query_events", "describe", "cancel"])
def test_jobs_of_others_are_not_told_apart_from_none(two: Two, operation: str) -> None:
    own, hidden, absent = two.jobs[two.mine], two.jobs[two.theirs], str(uuid.uuid4())

    def ask(job: str) -> httpx.Response:
        body = {"job_ids": [own, job]} if operation == "query_events" else {"job_id": job}
        return two.ann.ask(f"jobs/{operation}", body)

    before = two.state()
    assert (ask(hidden).status_code, ask(hidden).json()["code"]) == (404, 10)
    assert same(ask(hidden), ask(absent), (hidden, absent))
    assert two.state() == before


def test_transactions_of_others_are_not_altered(two: Two) -> None:
    path = f"/v1/table/{two.theirs}$other/declare"
    made = two.admin.post(path).json()["transaction_id"]
    absent, before = str(uuid.uuid4()), two.state()
    actions = [
        {"setPropertyAction": {"key": "a", "value": "b"}},
        {"setStatusAction": {"status": "Canceled"}},
    ]
    for id in (made, two.jobs[two.theirs]):
        told = two.ann.ask(f"transaction/{id}/alter", {"actions": actions})
        other = two.ann.ask(f"transaction/{absent}/alter", {"actions": actions})
        assert (told.status_code, told.json()["code"]) == (404, 10)
        assert same(told, other, (id, absent))
    assert two.state() == before
    # One's own cannot reach further by an id of several parts.
    sly = two.ann.ask(f"transaction/{two.mine}${made}/alter", {"actions": actions})
    assert sly.status_code == 404


@pytest.mark.parametrize("kind", ["table", "view"])
def test_a_rename_across_namespaces_shows_and_moves_nothing(two: Two, kind: str) -> None:
    before, absent = two.state(), f"n{uuid.uuid4().hex[:8]}"

    def rename(source: str, to: str) -> httpx.Response:
        if kind == "table":
            body = {"new_table_name": "moved", "new_namespace_id": [to]}
            return two.ann.ask(f"table/{source}$d/rename", body)
        ends = {"source": (source, "v"), "destination": (to, "moved")}
        both = {end: {"namespace": [ns], "name": name} for end, (ns, name) in ends.items()}
        return two.ann.server.post("/iceberg/v1/views/rename", both)

    for hidden, gone in (
        (rename(two.mine, two.theirs), rename(two.mine, absent)),
        (rename(two.theirs, two.mine), rename(absent, two.mine)),
    ):
        assert hidden.status_code == 404
        assert same(hidden, gone, (two.theirs, absent))
    two.gate.grant(two.ann.name, "writer", "namespace", two.theirs)
    for source, to in ((two.mine, two.theirs), (two.theirs, two.mine)):
        assert rename(source, to).status_code == 403
    assert two.state() == before
