"""Changes of views, materialized ones and others."""

from tests.harness.clients.changes.requests import Prepare, ask, lance, with_rows
from tests.harness.clients.idempotency_keys import Request
from tests.harness.processes.servers import Server


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


CHANGES: dict[str, Prepare] = {
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
}
