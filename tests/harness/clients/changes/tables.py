"""Changes of namespaces, manifests and tables, of their versions, tags and branches."""

from tests.harness.clients.changes.requests import (
    Prepare,
    ask,
    lance,
    long_stream,
    with_namespace,
    with_rows,
)
from tests.harness.clients.idempotency_keys import Request
from tests.harness.data.arrow import people, to_stream
from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import declare, new_name
from tests.harness.processes.servers import Server


def with_tag(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    ask(server, f"{path}/tags/create", {"tag": "x", "version": 1})
    return path


def with_branch(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    ask(server, f"{path}/branches/create", {"name": "dev"})
    return path


def drop_manifest(server: Server, ns: str) -> Request:
    ask(server, f"manifest/{ns}/create", {"manifest": "{}"})
    return lance(f"manifest/{ns}/drop")


def drop_namespace(server: Server, ns: str) -> Request:
    with_namespace(server, ns)
    return lance(f"namespace/{ns}$x/drop", {"behavior": "Cascade"})


def register_table(server: Server, ns: str) -> Request:
    location = f"{new_name()}.lance"
    commit_by_path(server.lake / location, 1)
    return lance(f"table/{ns}$t/register", {"location": location})


def create_version(server: Server, ns: str) -> Request:
    table = declare(server, f"{ns}$t")
    table.commit(1)
    return lance(f"table/{table.id}/version/create", table.entry(2))


def delete_versions(server: Server, ns: str) -> Request:
    table = declare(server, f"{ns}$t")
    table.commit(1, 2, 3)
    ranges = [{"start_version": 1, "end_version": 3}]
    return lance(f"table/{table.id}/version/delete", {"ranges": ranges})


def batch_create(server: Server, ns: str) -> Request:
    tables = [declare(server, f"{ns}$t{n}") for n in range(2)]
    return lance("table/version/batch-create", {"entries": [t.entry(1) for t in tables]})


def batch_commit(server: Server, ns: str) -> Request:
    table, gone = declare(server, f"{ns}$t"), declare(server, f"{ns}$gone")
    operations = [
        {"declare_table": {"id": [ns, "new"]}},
        {"create_table_version": table.entry(1)},
        {"deregister_table": {"id": gone.parts}},
    ]
    return lance("table/batch-commit", {"operations": operations})


def alter_transaction(server: Server, ns: str) -> Request:
    id = ask(server, f"namespace/{ns}$x/create")["transaction_id"]
    # Such an action works only once.
    action = {"setPropertyAction": {"key": "a", "value": "1", "mode": "Fail"}}
    return lance(f"transaction/{id}/alter", {"actions": [action]})


def create_long(server: Server, ns: str) -> Request:
    return lance(f"table/{ns}$t/create", long_stream())


def update_tag(server: Server, ns: str) -> Request:
    return lance(f"{with_tag(server, ns)}/tags/update", {"tag": "x", "version": 2})


def create_namespace(_: Server, ns: str) -> Request:
    return lance(f"namespace/{ns}$x/create", {"properties": {"a": "b"}})


def overwrite_namespace(server: Server, ns: str) -> Request:
    with_namespace(server, ns)
    return lance(f"namespace/{ns}$x/create", {"mode": "Overwrite"})


def clone_table(server: Server, ns: str) -> Request:
    location = ask(server, f"{with_rows(server, ns)}/describe")["location"]
    return lance(f"table/{ns}$copy/clone", {"source_location": location, "is_shallow": True})


CHANGES: dict[str, Prepare] = {
    "CreateNamespace": create_namespace,
    "CreateNamespace overwrite": overwrite_namespace,
    "DropNamespace": drop_namespace,
    "DeclareTable": lambda s, ns: lance(f"table/{ns}$t/declare", {"properties": {"a": "b"}}),
    "RegisterTable": register_table,
    "DropTable": lambda s, ns: lance(f"{with_rows(s, ns)}/drop"),
    "DeregisterTable": lambda s, ns: lance(f"{with_rows(s, ns)}/deregister"),
    "RenameTable": lambda s, ns: lance(f"{with_rows(s, ns)}/rename", {"new_table_name": "x"}),
    "RestoreTable": lambda s, ns: lance(f"{with_rows(s, ns)}/restore", {"version": 1}),
    "CreateTableVersion": create_version,
    "BatchDeleteTableVersions": delete_versions,
    "BatchCreateTableVersions": batch_create,
    "BatchCommitTables": batch_commit,
    "AlterTransaction": alter_transaction,
    "CreateTable": lambda s, ns: lance(f"table/{ns}$t/create", to_stream(people(1, 2))),
    "CreateTable long": create_long,
    "CloneTable": clone_table,
    "CreateManifest": lambda s, ns: lance(f"manifest/{ns}/create", {"manifest": "{}"}),
    "DropManifest": drop_manifest,
    "UpdateTableSchemaMetadata": lambda s, ns: lance(
        f"{with_rows(s, ns)}/schema_metadata/update", {"a": "b"}
    ),
    "CreateTableTag": lambda s, ns: lance(
        f"{with_rows(s, ns)}/tags/create", {"tag": "x", "version": 1}
    ),
    "UpdateTableTag": update_tag,
    "DeleteTableTag": lambda s, ns: lance(f"{with_tag(s, ns)}/tags/delete", {"tag": "x"}),
    "CreateTableBranch": lambda s, ns: lance(
        f"{with_rows(s, ns)}/branches/create", {"name": "dev"}
    ),
    "DeleteTableBranch": lambda s, ns: lance(
        f"{with_branch(s, ns)}/branches/delete", {"name": "dev"}
    ),
}
