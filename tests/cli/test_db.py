"""`penstock db`, run as a person would."""

import json
import subprocess
from pathlib import Path

from penstock.database.schema import list_migrations
from tests.harness.processes import nursery, servers


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return nursery.run(arguments)


def test_status_of_a_folder_without_a_catalog_says_so(tmp_path: Path) -> None:
    found = run("db", "status", "--data", str(tmp_path / "none"))
    assert found.returncode == 2
    assert "there is no catalog" in found.stderr
    assert not (tmp_path / "none").exists()


def test_upgrade_makes_a_catalog_and_then_has_nothing_to_do(tmp_path: Path) -> None:
    assert "applied 1" in run("db", "upgrade", "--data", str(tmp_path)).stdout
    assert "nothing to do" in run("db", "upgrade", "--data", str(tmp_path)).stdout


def test_status_works_beside_a_running_server(tmp_path: Path) -> None:
    with servers.running(tmp_path):
        found = run("db", "status", "--json", "--data", str(tmp_path))
    known = [migration.number for migration in list_migrations()]
    assert json.loads(found.stdout) == {"applied": known, "pending": []}


def test_upgrade_beside_a_running_server_is_refused(tmp_path: Path) -> None:
    with servers.running(tmp_path):
        found = run("db", "upgrade", "--data", str(tmp_path))
    assert found.returncode == 2
    assert "another Penstock process" in found.stderr
