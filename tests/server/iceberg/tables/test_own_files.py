"""Places of the server's own files, and those that a table's files are still at: nobody else's."""

import json
from pathlib import Path

import httpx
import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
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


def test_a_place_that_a_table_left_stays_its_own(server: Server, namespace: str) -> None:
    lake = f"{server.lake.resolve()}/{namespace}"
    first, second, third = (f"{lake}-{number}" for number in range(3))
    tables.make(server, namespace, location=first)
    file = Path(first) / "data" / "x.parquet"
    file.parent.mkdir()
    file.write_bytes(b"x")

    def move(place: str) -> httpx.Response:
        update = {"action": "set-location", "location": place}
        return tables.commit(namespace, "t", update).send(server)

    for place, other in ((second, first), (first, second), (second, first)):
        move(place).raise_for_status()
        for inside in (other, f"{other}/data", lake.rpartition("/")[0]):
            made = tables.create(namespace, "u", location=inside).send(server)
            assert made.status_code in (400, 403), made.text
        declared = server.post(f"/v1/table/{namespace}$l/declare", {"location": other})
        assert declared.status_code == 409, declared.text
    message = refused(move(third), 400, "BadRequestException")
    assert first in message
    assert second in message
    assert file.exists()
    # Nothing else is in either, so that a purge removes both.
    assert tables.drop(namespace, purge=True).send(server).status_code == 204
    until(lambda: not Path(first).exists() and not Path(second).exists(), "a folder is there")
    tables.make(server, namespace, "again", location=first)
