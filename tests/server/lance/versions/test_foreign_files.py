"""A version reads files of its own table only, whatever its manifest refers to."""

from pathlib import Path

import lance
import pytest

from tests.harness.data.arrow import people, read_back, send
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server


@pytest.fixture
def secret(server: Server, namespace: str) -> Path:
    """Where somebody else's table lies."""
    made = send(server, f"/v1/table/{namespace}$secret/create", people(1, 2, 3)).json()
    return Path(made["location"])


@pytest.fixture
def clone(server: Server, namespace: str, secret: Path) -> Path:
    """A table of a client's own, with one manifest that refers to the other's files."""
    location = server.lake / namespace / "clone"
    lance.dataset(secret).shallow_clone(str(location), 1)
    return location


def test_a_registered_table_does_not_show_another_tables_rows(
    server: Server, namespace: str, clone: Path
) -> None:
    server.post(f"/v1/table/{namespace}$c/register", {"location": str(clone)})
    for operation, body in (
        ("query", {"k": 10, "vector": []}),
        ("count_rows", {}),
        ("describe", {"load_detailed_metadata": True}),
        ("stats", {}),
        ("delete", {"predicate": "id = 1"}),
        ("index/list", {}),
    ):
        answer = server.post(f"/v1/table/{namespace}$c/{operation}", body)
        assert code(answer) == (400, 19), (operation, answer.text)
        assert "outside its folder" in answer.text


def test_a_version_that_refers_to_another_tables_files_is_not_committed(
    server: Server, namespace: str, clone: Path
) -> None:
    answer = server.post(f"/v1/table/{namespace}$t/declare").json()
    location = Path(answer["location"])
    staged = location / "_versions" / f"{2**64 - 2}.manifest-staged"
    staged.parent.mkdir(parents=True)
    staged.write_bytes((clone / "_versions" / f"{2**64 - 2}.manifest").read_bytes())
    body = {"version": 1, "manifest_path": str(staged)}
    answer = server.post(f"/v1/table/{namespace}$t/version/create", body)
    assert code(answer) == (400, 13)
    assert "refers to files at" in answer.text


def test_one_that_was_committed_by_path_is_not_read(
    server: Server, namespace: str, clone: Path
) -> None:
    made = send(server, f"/v1/table/{namespace}$t/create", people(7)).json()
    manifest = clone / "_versions" / f"{2**64 - 2}.manifest"
    lance.dataset(clone).delete("id = 1")
    newer = clone / "_versions" / f"{2**64 - 3}.manifest"
    assert manifest.exists()
    target = Path(made["location"]) / "_versions" / newer.name
    target.write_bytes(newer.read_bytes())
    answer = server.post(f"/v1/table/{namespace}$t/count_rows", {"version": 2})
    assert code(answer) == (400, 19)


def test_a_branch_reads_its_own_tables_files(server: Server, namespace: str) -> None:
    id = f"{namespace}$b"
    send(server, f"/v1/table/{id}/create", people(1, 2)).raise_for_status()
    server.post(f"/v1/table/{id}/branches/create", {"name": "dev"}).raise_for_status()
    send(server, f"/v1/table/{id}/insert", people(3), branch="dev").raise_for_status()
    count = server.post(f"/v1/table/{id}/count_rows", {"branch": "dev"})
    assert count.json() == 3
    assert read_back(server, id) == people(1, 2).to_pylist()
