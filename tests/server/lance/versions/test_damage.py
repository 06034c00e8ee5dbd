"""Files of a table that are missing or damaged: named in the answer, and never an empty table."""

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

ROWS = pa.table({"id": pa.array(range(300), pa.int64())})


def make_table(server: Server, id: str) -> Path:
    """A table with an index and deleted rows, of which nothing was read yet."""
    send(server, f"/v1/table/{id}/create", ROWS).raise_for_status()
    index = {"column": "id", "index_type": "BTREE"}
    server.post(f"/v1/table/{id}/create_scalar_index", index).raise_for_status()
    server.post(f"/v1/table/{id}/delete", {"predicate": "id = 5"}).raise_for_status()
    return Path(server.post(f"/v1/table/{id}/describe").json()["location"])


def newest_manifest(table: Path) -> Path:
    return min((table / "_versions").glob("*.manifest"))


def fill_with_zeros(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def ask_everything(server: Server, id: str) -> list[httpx.Response]:
    return [
        server.post(f"/v1/table/{id}/describe", {"load_detailed_metadata": True}),
        server.post(f"/v1/table/{id}/count_rows", {}),
        server.post(f"/v1/table/{id}/query", {"k": 3, "filter": "id = 7"}),
        server.post(f"/v1/table/{id}/update", {"updates": [["id", "id"]]}),
        send(server, f"/v1/table/{id}/insert", ROWS),
    ]


@pytest.mark.parametrize("spoil", [fill_with_zeros, cut])
def test_a_damaged_manifest_is_told_and_not_taken_for_a_table(
    server: Server, namespace: str, spoil: Callable[[Path], None]
) -> None:
    id = f"{namespace}$t"
    table = make_table(server, id)
    spoil(newest_manifest(table))
    for answer in ask_everything(server, id):
        assert (answer.status_code, answer.json()["code"]) == (503, 17), answer.text
        assert newest_manifest(table).name in answer.json()["error"]
        assert "backup" in answer.json()["detail"]
    # What is older can be read, and does what the answer said.
    assert server.post(f"/v1/table/{id}/count_rows", {"version": 1}).json() == 300
    newest_manifest(table).unlink()
    assert server.post(f"/v1/table/{id}/count_rows", {}).json() == 300


def test_a_manifest_of_another_table_is_not_taken_for_this_one_s(
    server: Server, namespace: str
) -> None:
    id = f"{namespace}$t"
    table, other = make_table(server, id), make_table(server, f"{namespace}$other")
    shutil.copy(newest_manifest(other), newest_manifest(table))
    for answer in ask_everything(server, id):
        assert answer.status_code == 503, answer.text
        assert newest_manifest(table).name in answer.json()["error"]


def test_another_damaged_file_is_named(tmp_path: Path) -> None:
    cases = [
        (f, s) for f in ("data", "_deletions", "_indices") for s in (fill_with_zeros, Path.unlink)
    ]
    with servers.running(tmp_path) as server:
        tables = [make_table(server, f"t{number}") for number, _ in enumerate(cases)]
    spoilt = [
        sorted(f for f in (t / c[0]).rglob("*") if f.is_file())
        for t, c in zip(tables, cases, strict=True)
    ]
    for files, (_, spoil) in zip(spoilt, cases, strict=True):
        for file in files:
            spoil(file)
    # A server that has none of it in memory.
    with servers.running(tmp_path) as server:
        for number, (folder, _) in enumerate(cases):
            answer = server.post(f"/v1/table/t{number}/query", {"k": 3, "filter": "id = 7"})
            assert (answer.status_code, answer.json()["code"]) == (503, 17), answer.text
            assert any(file.name in answer.json()["error"] for file in spoilt[number]), answer.text
            assert ("drop the index" in answer.json()["detail"]) == (folder == "_indices")
