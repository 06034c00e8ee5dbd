"""Lakes with Iceberg tables whose root changes, or whose catalog is lost."""

from pathlib import Path

import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes import servers
from tests.harness.processes.waiting import until


def roots(data: Path, root: str, allowed: str) -> dict[str, str]:
    return {
        "PENSTOCK__STORAGE__ROOT": str(data / root),
        "PENSTOCK__STORAGE__ALLOWED_ROOTS": f'["{data / allowed}"]',
    }


def test_tables_stay_where_they_are_when_new_ones_go_elsewhere(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ=roots(tmp_path, "lake", "more")) as server:
        server.post("/v1/namespace/n/create").raise_for_status()
        made = tables.make(server, "n")
    with servers.running(tmp_path, environ=roots(tmp_path, "more", "lake")) as server:
        assert tables.load(server, "n")["metadata"] == made["metadata"]
        tables.set_property("n", a="b").send(server).raise_for_status()
        # What is there is still the table's own.
        inside = tables.create("n", "u", location=f"{made['metadata']['location']}/x").send(server)
        assert inside.status_code == 400, inside.text
        assert str(tmp_path / "more") in tables.make(server, "n", "v")["metadata"]["location"]
        tables.drop("n", purge=True).send(server).raise_for_status()
        folder = tables.local(made["metadata"]["location"])
        until(lambda: not folder.exists(), "the folder is still there")


def test_an_empty_database_does_not_begin_beside_a_lake_of_iceberg_tables(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/n/create").raise_for_status()
        tables.make(server, "n")
    (tmp_path / "lake" / "_penstock.json").unlink()
    for each in tmp_path.glob("catalog.sqlite*"):
        each.unlink()
    told = "holds tables of a catalog"
    with pytest.raises(AssertionError, match=told), servers.running(tmp_path):
        pass
