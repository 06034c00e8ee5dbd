"""Metadata files that somebody changed: who may write a table's rows can write into its folder."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes import servers

Change = Callable[[tables.Json, str], tables.Json | str]

DEEP = '{"format-version": 2, "refs": {}, "x": ' + "[" * 900 + "]" * 900 + "}"
CHANGES: dict[str, Change] = {
    "nothing": lambda _d, _lake: "{}",
    "a version only": lambda _d, _lake: '{"format-version": 2}',
    "deep": lambda _d, _lake: DEEP,
    "schemas": lambda d, _: {**d, "schemas": 5},
    "references": lambda d, _: {**d, "refs": {"main": 5}},
    "snapshots": lambda d, _: {**d, "snapshots": [5]},
    "the log": lambda d, _: {**d, "metadata-log": 7},
    "properties": lambda d, _: {**d, "properties": [1]},
    "the place outside": lambda d, _: {**d, "location": "/etc"},
    "the place within": lambda d, lake: {**d, "location": f"{lake}/elsewhere"},
    "the place's kind": lambda d, _: {**d, "location": 5},
    "the uuid": lambda d, _: {**d, "table-uuid": str(uuid.uuid4())},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


def test_a_changed_file_is_told_as_damaged_by_every_route(data: Path) -> None:
    made = {}
    with servers.running(data) as server:
        server.post("/v1/namespace/n/create").raise_for_status()
        for number, (what, change) in enumerate(CHANGES.items()):
            made[what] = (f"t{number}", tables.make(server, "n", f"t{number}"))
            told = made[what][1]
            said = change(told["metadata"], str(server.lake.resolve()))
            content = said if isinstance(said, str) else json.dumps(said)
            tables.local(told["metadata-location"]).write_text(content)
    # Nothing is cached in a new one.
    with servers.running(data) as server:
        for what, (name, told) in made.items():
            path = tables.path("n", name)
            for answer in (
                server.client.get(path),
                server.client.get(path, params={"snapshots": "refs"}),
                tables.append_to("n", name, told["metadata"]).send(server),
                tables.set_property("n", name, a="b").send(server),
                server.post(f"/v1/iceberg_table/n${name}/describe"),
                tables.unregister("n", name).send(server),
            ):
                assert answer.status_code == 503, f"{what}: {answer.text}"
                assert "cannot be read" in answer.text
            assert tables.drop("n", name, purge=True).send(server).status_code == 204, what
