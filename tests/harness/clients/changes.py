"""One working request for every change that the two protocols have."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables
from tests.harness.clients.idempotency_keys import Request
from tests.harness.data.arrow import people, send, to_stream
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import declare, new_name
from tests.harness.processes.servers import Server

# Prepares what a request needs in a namespace, and returns the request.
Prepare = Callable[[Server, str], Request]


def lance(path: str, body: Any = None, **params: str) -> Request:
    return Request("POST", f"/v1/{path}", body, params)


def with_rows(server: Server, ns: str, name: str = "t") -> str:
    """A table with the versions 1 and 2, and three rows in the newest."""
    id = f"{ns}${name}"
    send(server, f"/v1/table/{id}/create", people(1, 2)).raise_for_status()
    send(server, f"/v1/table/{id}/insert", people(3)).raise_for_status()
    return f"table/{id}"


def ask(server: Server, path: str, body: Any = None) -> dict[str, Any]:
    answer = server.post(f"/v1/{path}", body).raise_for_status()
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


def with_tag(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    ask(server, f"{path}/tags/create", {"tag": "x", "version": 1})
    return path


def with_index(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    body = {"column": "id", "index_type": "BTREE", "name": "i"}
    ask(server, f"{path}/create_scalar_index", body)
    return path


def with_branch(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    ask(server, f"{path}/branches/create", {"name": "dev"})
    return path


def with_computed(server: Server, ns: str) -> str:
    path = with_rows(server, ns)
    columns = [{"name": "double", "computed": "id * 2"}]
    ask(server, f"{path}/add_columns", {"new_columns": columns})
    return path


def cancel_job(server: Server, ns: str) -> Request:
    path = f"{with_computed(server, ns)}/backfill_column"
    return lance("jobs/cancel", {"job_id": ask(server, path, {"column": "double"})["job_id"]})


def pause_job(server: Server, ns: str) -> Request:
    path = f"{with_computed(server, ns)}/backfill_column"
    return lance("jobs/pause", {"job_id": ask(server, path, {"column": "double"})["job_id"]})


def resume_job(server: Server, ns: str) -> Request:
    path = f"{with_computed(server, ns)}/backfill_column"
    body = {"job_id": ask(server, path, {"column": "double"})["job_id"]}
    ask(server, "jobs/pause", body)
    return lance("jobs/resume", body)


def drop_manifest(server: Server, ns: str) -> Request:
    ask(server, f"manifest/{ns}/create", {"manifest": "{}"})
    return lance(f"manifest/{ns}/drop")


def with_namespace(server: Server, ns: str) -> str:
    ask(server, f"namespace/{ns}$x/create", {"properties": {"a": "1", "b": "2"}})
    return f"{ns}%1Fx"


def with_view(server: Server, ns: str) -> str:
    views.create(ns).send(server).raise_for_status()
    return ns


def long_stream() -> bytes:
    """More than a server takes in whole."""
    rows = 100_000
    return to_stream(pa.table({"id": range(rows), "name": ["x" * 40] * rows}))


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


def add_columns(server: Server, ns: str) -> Request:
    columns = [{"name": "twice", "expression": "id * 2"}]
    return lance(f"{with_rows(server, ns)}/add_columns", {"new_columns": columns})


def a_function(version: str = "1") -> dict[str, Any]:
    """One that fills two columns."""
    code = b"\x80\x05N."
    return virtual_column(code, ["id"], {"a": "int32", "b": "utf8"}, "batch", version=version)


def add_function(server: Server, ns: str) -> Request:
    columns = [
        {"name": "twice", "expression": "id * 2"},
        {"name": "double", "computed": "id * 2"},
        new_column(a_function()),
    ]
    return lance(f"{with_rows(server, ns)}/add_columns", {"new_columns": columns})


def alter_function(server: Server, ns: str) -> Request:
    path = with_rows(server, ns)
    ask(server, f"{path}/add_columns", {"new_columns": [new_column(a_function())]})
    column = {key: value for key, value in a_function("2").items() if key != "outputs"}
    changes = [{"path": "a", "rename": "first", "virtual_column": column}]
    return lance(f"{path}/alter_columns", {"alterations": changes})


def create_function(server: Server, ns: str) -> Request:
    made = a_function()
    outputs = [{"name": each["column"], "data_type": each["data_type"]} for each in made["outputs"]]
    body = {**made, "inputs": [{"name": "id"}], "outputs": outputs}
    return lance(f"function/{ns}$f/create", body)


def with_function(server: Server, ns: str) -> str:
    create_function(server, ns).send(server).raise_for_status()
    return f"function/{ns}$f"


def use_function(server: Server, ns: str) -> Request:
    path = with_rows(server, ns)
    with_function(server, ns)
    column = {"name": "a", "function": {"name": [ns, "f"]}}
    return lance(f"{path}/add_columns", {"new_columns": [column]})


def set_function(server: Server, ns: str) -> Request:
    request = use_function(server, ns)
    request.send(server).raise_for_status()
    change = {
        "path": "a",
        "function": {"name": [ns, "f"], "version": 1, "field_metadata": {"x": "y"}},
    }
    return lance(f"table/{ns}$t/alter_columns", {"alterations": [change]})


def alter_columns(server: Server, ns: str) -> Request:
    changes = [{"path": "name", "rename": "called"}]
    return lance(f"{with_rows(server, ns)}/alter_columns", {"alterations": changes})


def update_fields(server: Server, ns: str) -> Request:
    updates = [{"path": "name", "metadata": {"a": "b"}}]
    return lance(f"{with_rows(server, ns)}/update_field_metadata", {"updates": updates})


def create_index(server: Server, ns: str) -> Request:
    body = {"column": "name", "index_type": "FTS", "name": "i"}
    return lance(f"{with_rows(server, ns)}/create_index", body)


def create_scalar_index(server: Server, ns: str) -> Request:
    body = {"column": "id", "index_type": "BTREE", "name": "i"}
    return lance(f"{with_rows(server, ns)}/create_scalar_index", body)


def merge(server: Server, ns: str) -> Request:
    flags = {"on": "id", "when_matched_update_all": "true", "when_not_matched_insert_all": "true"}
    rows = to_stream(people(3, 4, name="new"))
    return lance(f"{with_rows(server, ns)}/merge_insert", rows, **flags)


def update_rows(server: Server, ns: str) -> Request:
    # Twice would be seen.
    return lance(f"{with_rows(server, ns)}/update", {"updates": [["id", "id + 10"]]})


def insert_long(server: Server, ns: str) -> Request:
    return lance(f"{with_rows(server, ns)}/insert", long_stream())


def create_long(server: Server, ns: str) -> Request:
    return lance(f"table/{ns}$t/create", long_stream())


def insert_first(server: Server, ns: str) -> Request:
    declare(server, f"{ns}$t")
    return lance(f"table/{ns}$t/insert", to_stream(people(1)))


def update_tag(server: Server, ns: str) -> Request:
    return lance(f"{with_tag(server, ns)}/tags/update", {"tag": "x", "version": 2})


def create_namespace(_: Server, ns: str) -> Request:
    return lance(f"namespace/{ns}$x/create", {"properties": {"a": "b"}})


def overwrite_namespace(server: Server, ns: str) -> Request:
    with_namespace(server, ns)
    return lance(f"namespace/{ns}$x/create", {"mode": "Overwrite"})


def with_materialized_view(server: Server, ns: str) -> str:
    with_rows(server, ns)
    body = {"kind": "query", "source_query": "SELECT id FROM t"}
    ask(server, f"materialized_view/{ns}$m/create", body)
    return f"materialized_view/{ns}$m"


def create_materialized_view(server: Server, ns: str) -> Request:
    with_rows(server, ns)
    body = {"kind": "query", "source_query": "SELECT id FROM t", "with_no_data": False}
    return lance(f"materialized_view/{ns}$m/create", body)


def create_view(server: Server, ns: str) -> Request:
    with_rows(server, ns)
    return lance(f"view/{ns}$v/create", {"query": "SELECT id FROM t"})


def with_named_query(server: Server, ns: str) -> str:
    create_view(server, ns).send(server).raise_for_status()
    return f"view/{ns}$v"


def rename_view(server: Server, ns: str) -> Request:
    with_named_query(server, ns)
    return lance(f"table/{ns}$v/rename", {"new_table_name": "x"})


def with_upload(server: Server, ns: str) -> tuple[str, str]:
    """A table, and the id of an upload with one part."""
    path = with_rows(server, ns)
    upload: str = ask(server, f"{path}/multipart_write/create")["upload_id"]
    part = {"upload_id": upload, "upload_part_id": "a"}
    send(server, f"/v1/{path}/insert", people(4), **part).raise_for_status()
    return path, upload


def complete_upload(server: Server, ns: str) -> Request:
    path, upload = with_upload(server, ns)
    return lance(f"{path}/multipart_write/complete", upload_id=upload)


def abort_upload(server: Server, ns: str) -> Request:
    path, upload = with_upload(server, ns)
    return lance(f"{path}/multipart_write/abort", upload_id=upload)


def clone_table(server: Server, ns: str) -> Request:
    location = ask(server, f"{with_rows(server, ns)}/describe")["location"]
    return lance(f"table/{ns}$copy/clone", {"source_location": location, "is_shallow": True})


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


# By the name of the operation, and what is special about the request if there are several.
LANCE: dict[str, Prepare] = {
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
    "InsertIntoTable": lambda s, ns: lance(f"{with_rows(s, ns)}/insert", to_stream(people(4))),
    "InsertIntoTable first": insert_first,
    "InsertIntoTable long": insert_long,
    "InsertIntoTable overwrite": lambda s, ns: lance(
        f"{with_rows(s, ns)}/insert", to_stream(people(4)), mode="overwrite"
    ),
    "BeginUpload": lambda s, ns: lance(f"{with_rows(s, ns)}/multipart_write/create"),
    "CompleteUpload": complete_upload,
    "AbortUpload": abort_upload,
    "MergeInsertIntoTable": merge,
    "UpdateTable": update_rows,
    "DeleteFromTable": lambda s, ns: lance(f"{with_rows(s, ns)}/delete", {"predicate": "id = 1"}),
    "AlterTableAddColumns": add_columns,
    "AlterTableAddColumns function": add_function,
    "AlterTableAlterColumns": alter_columns,
    "AlterTableAlterColumns function": alter_function,
    "AlterTableAddColumns registered function": use_function,
    "AlterTableAlterColumns registered function": set_function,
    "CreateFunction": create_function,
    "AlterFunction": lambda s, ns: lance(f"{with_function(s, ns)}/alter", {"disabled": True}),
    "DropFunction": lambda s, ns: lance(f"{with_function(s, ns)}/drop", {"version": 1}),
    "AlterTableDropColumns": lambda s, ns: lance(
        f"{with_rows(s, ns)}/drop_columns", {"columns": ["name"]}
    ),
    "AlterTableBackfillColumns": lambda s, ns: lance(
        f"{with_computed(s, ns)}/backfill_column", {"column": "double"}
    ),
    "CreateMaterializedView": create_materialized_view,
    "RefreshMaterializedView": lambda s, ns: lance(f"{with_materialized_view(s, ns)}/refresh"),
    "AlterMaterializedView": lambda s, ns: lance(
        f"{with_materialized_view(s, ns)}/alter", {"auto_refresh": False}
    ),
    "AlterMaterializedView query": lambda s, ns: lance(
        f"{with_materialized_view(s, ns)}/alter", {"source_query": "SELECT id AS other FROM t"}
    ),
    "ConsentMaterializedView": lambda s, ns: lance(f"{with_materialized_view(s, ns)}/consent"),
    "DropMaterializedView": lambda s, ns: lance(f"{with_materialized_view(s, ns)}/drop"),
    "CreateView": create_view,
    "AlterView": lambda s, ns: lance(
        f"{with_named_query(s, ns)}/alter", {"query": "SELECT id AS other FROM t"}
    ),
    "DropView": lambda s, ns: lance(f"{with_named_query(s, ns)}/drop"),
    "RenameTable view": rename_view,
    "DropTable cascade": lambda s, ns: lance(
        f"table/{with_materialized_view(s, ns).split('/')[1][:-1]}t/drop", cascade="true"
    ),
    "CancelJob": cancel_job,
    "PauseJob": pause_job,
    "ResumeJob": resume_job,
    "CreateManifest": lambda s, ns: lance(f"manifest/{ns}/create", {"manifest": "{}"}),
    "DropManifest": drop_manifest,
    "UpdateFieldMetadata": update_fields,
    "UpdateTableSchemaMetadata": lambda s, ns: lance(
        f"{with_rows(s, ns)}/schema_metadata/update", {"a": "b"}
    ),
    "CreateTableIndex": create_index,
    "CreateTableScalarIndex": create_scalar_index,
    "DropTableIndex": lambda s, ns: lance(f"{with_index(s, ns)}/index/i/drop"),
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


def update_properties(server: Server, ns: str) -> Request:
    body = {"updates": {"a": "9"}, "removals": ["b", "c"]}
    return Request("POST", f"{views.ROOT}/namespaces/{with_namespace(server, ns)}/properties", body)


ICEBERG: dict[str, Prepare] = {
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

CHANGES = {f"Lance {name}": prepare for name, prepare in LANCE.items()} | {
    f"Iceberg {name}": prepare for name, prepare in ICEBERG.items()
}
