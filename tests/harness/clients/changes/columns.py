"""Changes of columns, of the functions that fill them, and of their jobs."""

from typing import Any

from tests.harness.clients.changes.requests import Prepare, ask, lance, with_rows
from tests.harness.clients.idempotency_keys import Request
from tests.harness.data.functions import new_column, virtual_column
from tests.harness.processes.servers import Server


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


CHANGES: dict[str, Prepare] = {
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
    "CancelJob": cancel_job,
    "PauseJob": pause_job,
    "ResumeJob": resume_job,
    "UpdateFieldMetadata": update_fields,
}
