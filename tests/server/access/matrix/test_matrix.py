"""Every route by every role, on what it was granted and on somebody else's."""

import uuid
from collections.abc import Iterator

import httpx
import pytest

from penstock.catalog.access import tokens
from penstock.server.iceberg.routes import ROUTES
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.handlers.materialized_views import list_views
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS
from tests.harness.clients import iceberg_tables as tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server
from tests.server.access.matrix.needs import (
    BY_BODY,
    ELSEWHERE,
    ENOUGH,
    ICEBERG_ELSEWHERE,
    ICEBERG_MORE,
    ICEBERG_NEEDS,
    LANCE_NEEDS,
    ROLES,
    SEEING,
)
from tests.server.access.matrix.requests import World, ask_iceberg, ask_lance, body_for, make_view


@pytest.fixture(scope="module")
def world(gate: GuardedServer) -> Iterator[World]:
    admin = gate.admin()
    mine, other = (f"m{uuid.uuid4().hex[:8]}" for _ in range(2))
    callers = {}
    for role in ROLES:
        name = f"{role}{uuid.uuid4().hex[:8]}"
        callers[role] = gate.as_(gate.key(name))
    made = World(gate, admin, mine, other, callers)
    for ns in (mine, other):
        admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
        send(admin, f"/v1/table/{ns}$t/create", people(1, 2)).raise_for_status()
        columns = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
        admin.post(f"/v1/table/{ns}$t/add_columns", columns).raise_for_status()
        answer = admin.post(f"/v1/table/{ns}$t/backfill_column", {"column": "double"})
        made.jobs[ns] = answer.json()["job_id"]
        make_view(admin, ns, "v")
        tables.make(admin, ns, "i")
    for role in ROLES[1:]:
        principal = whoami(gate, callers[role])
        gate.grant(principal, role, "namespace", mine)
    yield made
    for server in (admin, *callers.values()):
        server.client.close()


def whoami(gate: GuardedServer, caller: Server) -> str:
    id = caller.client.headers["authorization"].split("_")[1]
    found = gate.work(lambda database: tokens.find(database, id))
    assert found is not None
    return found.principal


def expect(answer: httpx.Response, needs: str, role: str, is_mine: bool) -> str | None:
    """What is wrong with an answer; None when it is as it must be."""
    sees = is_mine and role in SEEING
    allowed = is_mine and role in ENOUGH[needs]
    status = answer.status_code
    if allowed:
        # A wrong body is 400.
        right = status in (200, 202, 204, 400, 409) or (
            status == 404 and answer.content and answer.json().get("code") in (6, 8, 13)
        )
    else:
        right = status == (403 if sees else 404)
    if right and status == 403 and answer.content:
        body = answer.json()
        text = body["error"] if isinstance(body["error"], str) else body["error"]["message"]
        code = body.get("code") or body["error"]["type"]
        right = f"lacks {needs} on" in text and code in (15, "ForbiddenException")
    return None if right else f"{status} {answer.text[:200]}"


@pytest.mark.parametrize("role", ROLES)
def test_each_lance_operation_is_allowed_to_who_it_must_be(world: World, role: str) -> None:
    wrong = {}
    for operation in (*OPERATIONS, *EXTENSIONS):
        for ns in (world.mine, world.other):
            is_mine, server = ns == world.mine, world.callers[role]
            if operation.name in LANCE_NEEDS:
                answer = ask_lance(server, operation, ns)
                needs = LANCE_NEEDS[operation.name]
            elif operation.name == "StreamJob" and is_mine and role in SEEING:
                # Its answer would not end.
                continue
            elif operation.name in BY_BODY:
                path, body = body_for(operation.name, world, ns)
                answer, needs = server.post(f"/v1/{path}", body), BY_BODY[operation.name]
            else:
                continue
            if problem := expect(answer, needs, role, is_mine):
                wrong[operation.name, "mine" if is_mine else "other"] = problem
    assert wrong == {}


@pytest.mark.parametrize("role", ROLES)
def test_each_iceberg_route_is_allowed_to_who_it_must_be(world: World, role: str) -> None:
    wrong = {}
    for name, needs in ICEBERG_NEEDS.items():
        for ns in (world.mine, world.other):
            is_mine = ns == world.mine
            answer = ask_iceberg(world.callers[role], name, world, ns, world.admin)
            if problem := expect(answer, needs, role, is_mine):
                wrong[name, "mine" if is_mine else "other"] = problem
    assert wrong == {}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", ICEBERG_MORE)
def test_a_commit_that_changes_what_a_table_is_needs_an_owner(
    world: World, role: str, name: str
) -> None:
    for ns in (world.mine, world.other):
        answer = ask_iceberg(world.callers[role], name, world, ns, world.admin)
        sees = ns == world.mine and role in SEEING
        wanted = 400 if sees and role == "owner" else 403 if sees else 404
        assert answer.status_code == wanted, answer.text


def test_no_route_is_missing_from_the_matrix() -> None:
    known = {*LANCE_NEEDS, *BY_BODY, *ELSEWHERE}
    assert {operation.name for operation in (*OPERATIONS, *EXTENSIONS)} == known
    assert {route.name for route in ROUTES} == {*ICEBERG_NEEDS, *ICEBERG_ELSEWHERE}


def test_what_may_not_be_seen_looks_as_if_it_did_not_exist(world: World) -> None:
    """The answers for what is there and for what is not differ in nothing but the name."""
    nobody, absent = world.callers["nobody"], f"m{uuid.uuid4().hex[:8]}"
    assert len(absent) == len(world.other)
    paths = [
        ("POST", "/v1/namespace/{}/describe"),
        ("GET", "/v1/namespace/{}/list"),
        ("GET", "/v1/namespace/{}/table/list"),
        ("POST", "/v1/table/{}$t/describe"),
        ("POST", "/v1/table/{}$t/drop"),
        ("POST", "/v1/table/{}$t/insert"),
        ("POST", "/v1/table/{}$new/declare"),
        ("GET", "/iceberg/v1/namespaces/{}"),
        ("GET", "/iceberg/v1/namespaces/{}/views/v"),
        ("DELETE", "/iceberg/v1/namespaces/{}/views/v"),
        ("GET", "/iceberg/v1/namespaces/{}/tables/i"),
        ("POST", "/iceberg/v1/namespaces/{}/tables/i"),
        ("GET", "/iceberg/v1/namespaces/{}/tables/i/credentials"),
    ]
    for method, path in paths:
        found, missing = (
            nobody.client.request(method, path.format(ns), headers={"x-request-id": "same"})
            for ns in (world.other, absent)
        )
        assert found.status_code == missing.status_code == 404, path
        assert found.text.replace(world.other, absent) == missing.text, path
    reader = world.callers["reader"]
    gone = reader.post(f"/v1/table/{world.mine}$no/describe").json()
    assert gone["code"] == 4


def test_a_route_without_a_rule_can_not_be_written() -> None:
    with pytest.raises(TypeError, match="needs"):
        LanceOperation("New", "POST", "new/{id}/thing", list_views)  # type: ignore[call-arg]
