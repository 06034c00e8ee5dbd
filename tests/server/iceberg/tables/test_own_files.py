"""Places of the server's own files, and those that a table's files are still at: nobody else's."""

import json
from pathlib import Path

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.servers import Server
from tests.server.iceberg.tables.test_commits import refused


@pytest.mark.parametrize("inside", ["", "/x", "/x/y"])
def test_nothing_is_put_among_results_of_statements(
    server: Server, namespace: str, inside: str
) -> None:
    place = f"{server.lake.resolve()}/_results{inside}"
    made = tables.make(server, namespace)
    (folder := Path(tables.local(made["metadata"]["location"]))).joinpath("x").mkdir()
    file = folder / "x" / "moved.metadata.json"
    file.write_text(json.dumps({**made["metadata"], "location": place}))
    move = {"action": "set-location", "location": place}
    for request in (
        tables.create(namespace, "u", location=place),
        tables.create(namespace, "u", location=f"file://{place}/", stage=True),
        tables.commit(namespace, "t", move),
        tables.set_property(namespace, **{"write.metadata.path": place}),
        tables.register(namespace, "u", str(file)),
        tables.register(namespace, "u", f"{place}/x.metadata.json"),
    ):
        refused(request.send(server), 403, "ForbiddenException")
    declared = server.post(f"/v1/table/{namespace}$l/declare", {"location": place})
    assert declared.status_code == 400, declared.text
    tables.make(server, namespace, "beside", location=f"{server.lake}/_results-{namespace}{inside}")
