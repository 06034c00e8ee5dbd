"""Iceberg tables in backups, moves and `doctor`: their files stay where they are, and are told."""

import json
import shutil
from pathlib import Path

from tests.harness.clients import iceberg_tables as tables
from tests.harness.data.backups import look_deep, run
from tests.harness.processes import servers


def test_they_are_not_in_a_backup_and_can_be_registered_afterwards(tmp_path: Path) -> None:
    data, backup, restored = (tmp_path / name for name in ("data", "backup", "restored"))
    with servers.running(data) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        made = tables.make(server, "ns")
        server.post("/v1/table/ns$lance/declare").raise_for_status()
    told = run("backup", backup, "--data", data)
    wanted = [{"name": "ns$t", "metadata_location": made["metadata-location"]}]
    assert told["iceberg_tables"] == wanted
    assert json.loads((backup / "backup.json").read_text())["iceberg_tables"] == wanted
    run("restore", backup, "--data", restored)
    environ = {"PENSTOCK__STORAGE__ALLOWED_ROOTS": str(data / "lake")}
    with servers.running(restored, environ=environ) as server:
        assert server.get(tables.path("ns")).status_code == 404
        back = tables.register("ns", "t", made["metadata-location"]).send(server)
        assert back.raise_for_status().json()["metadata"] == made["metadata"]


def test_a_lake_with_them_is_not_relocated(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    with servers.running(old) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        tables.make(server, "ns")
    shutil.move(old, new)
    said = run("relocate", "--data", new, code=2)
    assert "1 Iceberg tables are in the lake, the first is ns$t" in said
    shutil.move(new, old)
    with servers.running(old) as server:
        tables.load(server, "ns")
        tables.unregister("ns").send(server).raise_for_status()
    shutil.move(old, new)
    assert run("relocate", "--data", new)["views"] == 0


def test_doctor_misses_their_metadata(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.post("/v1/namespace/ns/create").raise_for_status()
        made = tables.make(server, "ns")
    assert "1 Iceberg tables; everything is there" in look_deep("--data", tmp_path)[0]
    tables.local(made["metadata-location"]).unlink()
    found = look_deep("--data", tmp_path, code=1)
    assert any(line.startswith("Iceberg table ns$t: ") for line in found), found
