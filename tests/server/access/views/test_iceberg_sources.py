"""Who may make and refresh views of Iceberg tables: those who may read the tables."""

import uuid

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server


def test_a_view_needs_reader_on_its_iceberg_table_for_as_long_as_it_is_refreshed(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
    tables.make(admin, ns, "ice")
    own = f"own{uuid.uuid4().hex[:8]}"
    admin.post(f"/v1/namespace/{own}/create").raise_for_status()
    ann = gate.as_(gate.key(name := f"ann{uuid.uuid4().hex[:8]}"))
    gate.grant(name, "owner", "namespace", own)
    body = {"kind": "query", "source_query": f"SELECT a FROM {ns}.ice", "with_no_data": True}
    create, refresh = (f"/v1/materialized_view/{own}$v/{each}" for each in ("create", "refresh"))
    hidden = ann.post(create, body)
    assert (hidden.status_code, "is not in the catalog" in hidden.text) == (400, True), hidden.text
    gate.grant(name, "reader", "table", ns, "ice")
    made = ann.post(create, body)
    assert made.status_code == 201, made.text
    grant = {"principal": name, "role": "reader", "table": [ns, "ice"]}
    admin.post("/v1/grants/revoke", grant).raise_for_status()
    refused = ann.post(refresh, {})
    assert refused.status_code == 403, refused.text
