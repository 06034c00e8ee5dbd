"""Readiness on disks that are full, nearly full, or not to be written to: real file systems."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.processes import servers
from tests.harness.processes.databases import sqlite_url
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def mount(*arguments: str) -> None:
    found = subprocess.run(["mount", *arguments], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("only root mounts a disk")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 80 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=80m", "none", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def problems(server: Server) -> dict[str, str]:
    answer = server.get("/readyz")
    body: dict[str, str] = answer.json()
    assert (answer.status_code, body.pop("status")) in ((200, "ok"), (503, "unavailable"))
    assert bool(body) == (answer.status_code == 503)
    return body


def test_a_server_is_not_ready_without_room(tmp_path: Path) -> None:
    environ = {"PENSTOCK__STORAGE__MIN_FREE_BYTES": str(10**17)}
    with servers.running(tmp_path, environ=environ) as server:
        found = problems(server)
        assert found.keys() == {"database", "storage"}
        assert "storage.min_free_bytes" in found["storage"]
        # It is watched, not enforced.
        assert server.post("/v1/namespace/a/create").status_code == 200


@pytest.mark.parametrize("part", ["database", "storage"])
def test_a_full_disk_is_told_of_and_so_is_its_end(tmp_path: Path, disk: Path, part: str) -> None:
    root = str(disk if part == "storage" else tmp_path / "lake")
    database = sqlite_url(disk if part == "database" else tmp_path)
    environ = {"PENSTOCK__STORAGE__ROOT": root}
    with servers.running(tmp_path, database=database, environ=environ) as server:
        assert problems(server) == {}
        filler = disk / "filler"
        subprocess.run(["fallocate", "-l", "30M", str(filler)], check=True)
        until(lambda: problems(server).keys() == {part}, "it does not see that room is short")
        assert "min_free_bytes" in problems(server)[part]
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=1M"], capture_output=True)
        until(lambda: "No space left" in problems(server)[part], "it does not see a full disk")
        filler.unlink()
        until(lambda: problems(server) == {}, "it does not see that there is room again")


def test_a_disk_that_is_not_to_be_written_to_is_told_of(tmp_path: Path, disk: Path) -> None:
    with servers.running(tmp_path, environ={"PENSTOCK__STORAGE__ROOT": str(disk)}) as server:
        mount("-o", "remount,ro", str(disk))
        until(lambda: "not writable" in problems(server).get("storage", ""), "it is not seen")
