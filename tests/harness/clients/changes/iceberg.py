"""Changes by the Iceberg protocol."""

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables
from tests.harness.clients.changes.requests import Prepare, with_namespace
from tests.harness.clients.idempotency_keys import Request
from tests.harness.processes.servers import Server


def with_view(server: Server, ns: str) -> str:
    views.create(ns).send(server).raise_for_status()
    return ns


def with_iceberg_table(server: Server, ns: str) -> str:
    iceberg_tables.make(server, ns)
    return ns


def append_snapshot(server: Server, ns: str) -> Request:
    metadata = iceberg_tables.make(server, ns)["metadata"]
    return iceberg_tables.append_to(ns, "t", metadata)


def commit_iceberg_tables(server: Server, ns: str) -> Request:
    """One that exists, and one that is made."""
    old = iceberg_tables.make(server, ns)["metadata"]
    new = iceberg_tables.make(server, ns, "staged", stage=True)["metadata"]
    return iceberg_tables.transaction(
        (ns, "t", *iceberg_tables.append(old)), (ns, "x", *iceberg_tables.created(new))
    )


def register_iceberg_table(server: Server, ns: str) -> Request:
    """A registration of a file that a table, which is gone again, has left."""
    made = iceberg_tables.make(server, ns, "left")
    iceberg_tables.drop(ns, "left").send(server).raise_for_status()
    return iceberg_tables.register(ns, "t", made["metadata-location"])


def update_properties(server: Server, ns: str) -> Request:
    body = {"updates": {"a": "9"}, "removals": ["b", "c"]}
    return Request("POST", f"{views.ROOT}/namespaces/{with_namespace(server, ns)}/properties", body)


CHANGES: dict[str, Prepare] = {
    "CreateNamespace": lambda s, ns: Request(
        "POST", f"{views.ROOT}/namespaces", {"namespace": [ns, "x"], "properties": {"a": "b"}}
    ),
    "DropNamespace": lambda s, ns: Request(
        "DELETE", f"{views.ROOT}/namespaces/{with_namespace(s, ns)}"
    ),
    "UpdateProperties": update_properties,
    "CreateView": lambda s, ns: views.create(ns),
    "ReplaceView": lambda s, ns: views.replace(with_view(s, ns), "v", "select 2"),
    "RenameView": lambda s, ns: views.rename(with_view(s, ns), "v", "w"),
    "DropView": lambda s, ns: views.drop(with_view(s, ns)),
    "RegisterView": lambda s, ns: views.register(s, ns),
    "CreateTable": lambda s, ns: iceberg_tables.create(ns),
    "CommitTable": append_snapshot,
    "DropTable": lambda s, ns: iceberg_tables.drop(with_iceberg_table(s, ns), purge=True),
    "UnregisterTable": lambda s, ns: iceberg_tables.unregister(with_iceberg_table(s, ns)),
    "RegisterTable": register_iceberg_table,
    "RenameTable": lambda s, ns: iceberg_tables.rename(with_iceberg_table(s, ns), "t", "x"),
    "CommitTransaction": commit_iceberg_tables,
}
