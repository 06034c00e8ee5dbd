"""Every route by every role, on what it was granted and on somebody else's.

What each route needs is written down here a second time, by hand: a rule that is changed, or a
route that is added, has to be changed here as well.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from penstock.server.iceberg.routes import ROUTES
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.handlers.materialized_views import list_views
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.lance_paths import fill_path
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server

ROLES = ("nobody", "functions", "reader", "writer", "owner")
ENOUGH = {
    "see": ("reader", "writer", "owner"),
    "reader": ("reader", "writer", "owner"),
    "writer": ("writer", "owner"),
    "owner": ("owner",),
}
SEEING = ENOUGH["see"]
# The path is right and the body can't be: who may do it hears 400, and nothing is changed.
WRONG = {"id": ["something", "else"]}

# What an operation needs on what its path names, or on the namespace of what it would make.
LANCE = {
    "see": "ListNamespaces NamespaceExists ListTables ListMaterializedViews ListFunctions "
    "ListViews ListIcebergTables ListNames SearchNames",
    "reader": "DescribeNamespace DescribeTable TableExists ListTableVersions DescribeTableVersion "
    "GetTableStats QueryTable CountTableRows ExplainTableQueryPlan AnalyzeTableQueryPlan "
    "ListTableIndices DescribeTableIndexStats ListTableTags GetTableTagVersion ListTableBranches "
    "ExplainBackfill ListTableErrors DescribeMaterializedView ExplainRefresh FindTableDependents "
    "ListMaterializedViewDefinitions DescribeFunction DescribeView DescribeIcebergTable "
    "ReadTableCell "
    "FindLineage FindFunctionLineage "
    "ListTableHistory CompareTableVersions ListRefreshes "
    # lancedb's own.
    "GetLsmWriteSpec GetLsmStats SetLsmWriteSpec UnsetLsmWriteSpec FlushLsm CompactLsm DiffBranch "
    "CherryPickBranch PrewarmTableIndex PrewarmTableData FetchBlobs ReadBlob",
    "writer": "RestoreTable CreateTableVersion BatchDeleteTableVersions InsertIntoTable "
    "MergeInsertIntoTable UpdateTable DeleteFromTable AlterTableBackfillColumns CreateTableIndex "
    "CreateTableScalarIndex DropTableIndex CreateTableTag DeleteTableTag UpdateTableTag "
    "CreateTableBranch DeleteTableBranch RefreshMaterializedView PreviewColumn "
    "BeginUpload CompleteUpload AbortUpload",
    "owner": "CreateNamespace DropNamespace RegisterTable DropTable DeregisterTable RenameTable "
    "UpdateTableSchemaMetadata AlterTableAlterColumns UpdateFieldMetadata AlterTableDropColumns "
    "CreateTable CloneTable AlterTableAddColumns CreateMaterializedView DeclareTable "
    "AlterMaterializedView ExplainAlterMaterializedView ConsentMaterializedView "
    "DropMaterializedView AlterFunction DropFunction CreateView AlterView DropView",
}
LANCE_NEEDS = {name: role for role, names in LANCE.items() for name in names.split()}
# Those whose bodies, or ids that are no names, say what they are about.
BY_BODY = {
    "BatchCreateTableVersions": "writer",
    "BatchCommitTables": "writer",
    "DescribeJob": "reader",
    "QueryJobEvents": "reader",
    "StreamJob": "reader",
    "ListJobLogs": "reader",
    "ListJobPhases": "reader",
    "CancelJob": "writer",
    "PauseJob": "writer",
    "ResumeJob": "writer",
    "CreateGrant": "owner",
    "RevokeGrant": "owner",
    "ListGrants": "owner",
}
# Roles on a namespace say nothing about these; each has a test of its own.
ELSEWHERE = {
    "ListAllTables",
    "ListJobs",
    "DescribeRights",
    "GetOverview",
    "DescribeTransaction",
    "AlterTransaction",
    "CreateFunction",
    "CreateManifest",
    "DescribeManifest",
    "DropManifest",
    "ListManifests",
    "LeaseJobs",
    "ReportJob",
    "FinishJob",
    "ReportJobErrors",
    "ListJobErrorRows",
    "SendJobResult",
    "RunSql",
    "ListAudit",
    "ListKeys",
    # Whoever asks, there are none.
    *("CreateSecret", "AlterSecret", "DescribeSecret", "DropSecret", "ListSecrets"),
}
ICEBERG_NEEDS = {
    "ListNamespaces": "see",
    "CreateNamespace": "owner",
    "LoadNamespace": "reader",
    "NamespaceExists": "see",
    "DropNamespace": "owner",
    "UpdateProperties": "owner",
    "ListViews": "see",
    "CreateView": "owner",
    "LoadView": "reader",
    "ViewExists": "reader",
    "ReplaceView": "owner",
    "DropView": "owner",
    "RenameView": "owner",
    "TranslateView": "reader",
    "TraceView": "reader",
    "RegisterView": "owner",
    "ListTables": "see",
    "CreateTable": "owner",
    "RegisterTable": "owner",
    "LoadTable": "reader",
    "TableExists": "reader",
    "LoadCredentials": "reader",
    "ReportMetrics": "reader",
    "CommitTable": "writer",
    "CommitTransaction": "writer",
    "DropTable": "owner",
    "UnregisterTable": "owner",
    "RenameTable": "owner",
}
# Commits that change what a table is; another test has each kind of them.
ICEBERG_MORE = (
    *("CommitTable schema", "CommitTable new"),
    *("CommitTransaction schema", "CommitTransaction new"),
)
# Open, or for everybody with a key.
ICEBERG_ELSEWHERE = {"GetConfig", "GetToken"}


@dataclass
class World:
    """Two namespaces with the same contents, and a caller for each role on the first one."""

    gate: GuardedServer
    admin: Server
    mine: str
    other: str
    callers: dict[str, Server]
    jobs: dict[str, str] = field(default_factory=dict)


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
    from penstock.catalog.access import tokens

    id = caller.client.headers["authorization"].split("_")[1]
    found = gate.work(lambda database: tokens.find(database, id))
    assert found is not None
    return found.principal


def make_view(server: Server, ns: str, name: str) -> None:
    views.create(ns, name, "select 1 as a, 2 as b").send(server).raise_for_status()


def ask_lance(server: Server, operation: LanceOperation, ns: str) -> httpx.Response:
    path = operation.path
    is_namespace = path.startswith("namespace/")
    name = "i" if path.startswith("iceberg_table/") else "v" if path.startswith("view/") else "t"
    id = ns if is_namespace else f"{ns}${name}"
    if operation.name == "CreateNamespace":
        id = f"{ns}$new"
    path = fill_path(path, id)
    if operation.streams or operation.method == "GET":
        return server.client.request(operation.method, f"/v1/{path}")
    return server.post(f"/v1/{path}", WRONG)


def body_for(name: str, world: World, ns: str) -> tuple[str, Any]:
    """A request of which only the body, or a job's id, says what it is about."""
    entry = {"id": [ns, "t"], "version": "x", "manifest_path": "y"}
    grant = {"namespace": [ns], "principal": "x", "role": "reader"}
    job = world.jobs[ns]
    return {
        "BatchCreateTableVersions": ("table/version/batch-create", {"entries": [entry]}),
        "BatchCommitTables": (
            "table/batch-commit",
            {"operations": [{"create_table_version": entry}]},
        ),
        "DescribeJob": ("jobs/describe", {"job_id": job}),
        "QueryJobEvents": ("jobs/query_events", {"job_ids": [job]}),
        "StreamJob": (f"jobs/{job}/events", None),
        "ListJobLogs": (f"jobs/{job}/logs", None),
        "ListJobPhases": (f"jobs/{job}/phases", None),
        "CancelJob": ("jobs/cancel", {"job_id": job}),
        "PauseJob": ("jobs/pause", {"job_id": job}),
        "ResumeJob": ("jobs/resume", {"job_id": job}),
        "CreateGrant": ("grants/create", grant),
        "RevokeGrant": ("grants/revoke", {**grant, "principal": "y"}),
        "ListGrants": ("grants/list", {"namespace": [ns]}),
    }[name]


def ask_iceberg(server: Server, name: str, world: World, ns: str, admin: Server) -> httpx.Response:
    root = "/iceberg/v1/penstock"
    in_ns = f"{root}/namespaces/{ns}"
    both = {"source": {"namespace": [ns], "name": "v"}}
    both["destination"] = both["source"]
    table = {"namespace": [ns], "name": "i"}
    if name == "DropView":
        make_view(admin, ns, gone := f"v{uuid.uuid4().hex[:8]}")
        return server.client.delete(f"{in_ns}/views/{gone}")
    if name in ("DropTable", "UnregisterTable"):
        tables.make(admin, ns, gone := f"i{uuid.uuid4().hex[:8]}")
        ask = tables.drop if name == "DropTable" else tables.unregister
        return ask(ns, gone).send(server)
    # Updates that any right of that kind allows, and that cannot be.
    rows = {"requirements": [], "updates": [{"action": "remove-snapshot-ref"}]}
    schema = {"requirements": [], "updates": [{"action": "add-schema"}]}
    new = {"requirements": [{"type": "assert-create"}], "updates": [{"action": "add-snapshot"}]}
    requests: dict[str, tuple[str, str, Any]] = {
        "ListNamespaces": ("GET", f"{root}/namespaces?parent={ns}", None),
        "CreateNamespace": (
            "POST",
            f"{root}/namespaces",
            {"namespace": [ns, "x"], "properties": 7},
        ),
        "LoadNamespace": ("GET", in_ns, None),
        "NamespaceExists": ("HEAD", in_ns, None),
        "DropNamespace": ("DELETE", in_ns, None),
        "UpdateProperties": ("POST", f"{in_ns}/properties", []),
        "ListViews": ("GET", f"{in_ns}/views", None),
        "CreateView": ("POST", f"{in_ns}/views", []),
        "LoadView": ("GET", f"{in_ns}/views/v", None),
        "ViewExists": ("HEAD", f"{in_ns}/views/v", None),
        "ReplaceView": ("POST", f"{in_ns}/views/v", []),
        "RenameView": ("POST", f"{root}/views/rename", both),
        "TranslateView": ("GET", f"{in_ns}/views/v/dialects?target=trino", None),
        "TraceView": ("GET", f"{in_ns}/views/v/lineage", None),
        "RegisterView": ("POST", f"{in_ns}/register-view", []),
        "ListTables": ("GET", f"{in_ns}/tables", None),
        "CreateTable": ("POST", f"{in_ns}/tables", []),
        "RegisterTable": ("POST", f"{in_ns}/register", []),
        "LoadTable": ("GET", f"{in_ns}/tables/i", None),
        "TableExists": ("HEAD", f"{in_ns}/tables/i", None),
        "LoadCredentials": ("GET", f"{in_ns}/tables/i/credentials", None),
        "ReportMetrics": ("POST", f"{in_ns}/tables/i/metrics", {}),
        "CommitTable": ("POST", f"{in_ns}/tables/i", rows),
        "CommitTable schema": ("POST", f"{in_ns}/tables/i", schema),
        "CommitTable new": ("POST", f"{in_ns}/tables/i", new),
        "RenameTable": ("POST", f"{root}/tables/rename", {"source": table, "destination": table}),
        **{
            f"CommitTransaction{kind}": (
                "POST",
                f"{root}/transactions/commit",
                {"table-changes": [{"identifier": table, **change}]},
            )
            for kind, change in (("", rows), (" schema", schema), (" new", new))
        },
    }
    method, path, body = requests[name]
    return server.client.request(method, path, json=body)


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
