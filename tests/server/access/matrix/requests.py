"""A request of each route, about a namespace and what is in it."""

import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx

from penstock.server.lance.operation import LanceOperation
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.clients.lance_paths import fill_path
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server

# The path is right and the body can't be: who may do it hears 400, and nothing is changed.
WRONG = {"id": ["something", "else"]}


@dataclass
class World:
    """Two namespaces with the same contents, and a caller for each role on the first one."""

    gate: GuardedServer
    admin: Server
    mine: str
    other: str
    callers: dict[str, Server]
    jobs: dict[str, str] = field(default_factory=dict)


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
