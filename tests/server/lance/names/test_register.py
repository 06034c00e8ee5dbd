"""RegisterTable: which places may become tables, and what that changes."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import Table, code, declare, new_name
from tests.harness.processes.servers import Server, running


@pytest.fixture
def place(server: Server) -> Path:
    """A table of two versions in the lake that no catalog knows."""
    return write(server.lake.resolve() / f"{new_name()}.lance")


def write(place: Path) -> Path:
    for version in (1, 2):
        commit_by_path(place, version)
    return place


def register(server: Server, id: str, location: object, **body: Any) -> httpx.Response:
    return server.post(f"/v1/table/{id}/register", {"location": str(location)} | body)


@pytest.mark.parametrize("form", ["{0}", "file://{0}", "{0}/", "{1}", "./{1}"])
def test_a_place_in_the_lake_becomes_a_table(
    server: Server, namespace: str, place: Path, form: str
) -> None:
    wanted = form.format(place, place.name)
    answer = register(server, f"{namespace}$t", wanted, properties={"a": "b"}).json()
    assert answer["location"] == str(place)
    assert answer["properties"] == {"a": "b"}
    assert answer["transaction_id"]
    described = server.post(f"/v1/table/{namespace}$t/describe").json()
    assert (described["location"], described["properties"]) == (str(place), {"a": "b"})


def test_its_versions_are_known_at_once(server: Server, namespace: str, place: Path) -> None:
    register(server, f"{namespace}$t", place).raise_for_status()
    table = Table(server, f"{namespace}$t", place)
    assert table.listed() == [1, 2]
    assert server.get(f"/v1/namespace/{namespace}/table/list", include_declared=False).json() == {
        "tables": ["t"]
    }


def test_a_registered_table_is_managed_only_on_request(
    server: Server, namespace: str, place: Path
) -> None:
    register(server, f"{namespace}$t", place).raise_for_status()
    described = server.post(f"/v1/table/{namespace}$t/describe").json()
    assert not described.get("managed_versioning")
    managed = {"penstock.managed_versioning": "true"}
    answer = register(server, f"{namespace}$t", place, mode="Overwrite", properties=managed)
    answer.raise_for_status()
    described = server.post(f"/v1/table/{namespace}$t/describe").json()
    assert described["managed_versioning"] is True


def test_a_registered_table_takes_commits(server: Server, namespace: str, place: Path) -> None:
    register(server, f"{namespace}$t", place).raise_for_status()
    table = Table(server, f"{namespace}$t", place)
    table.commit(3)
    assert table.listed() == [1, 2, 3]


@pytest.mark.parametrize("mode", [None, "Create", "create"])
def test_a_taken_name_is_refused(table: Table, place: Path, mode: str | None) -> None:
    table.commit(1)
    assert code(register(table.server, table.id, place, mode=mode)) == (409, 5)
    assert table.listed() == [1]


@pytest.mark.parametrize("mode", ["Overwrite", "overwrite", "OVERWRITE"])
def test_overwrite_replaces_the_registration_but_no_file(
    table: Table, place: Path, mode: str
) -> None:
    table.commit(1)
    register(table.server, table.id, place, mode=mode).raise_for_status()
    assert table.ask("describe").json()["location"] == str(place)
    assert table.listed() == [1, 2]
    assert table.file(1).exists()


def test_overwrite_also_creates(server: Server, namespace: str, place: Path) -> None:
    register(server, f"{namespace}$t", place, mode="Overwrite").raise_for_status()
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 200


def test_a_refused_overwrite_changes_nothing(table: Table, server: Server) -> None:
    table.commit(1)
    other = declare(server, f"{table.id}2")
    other.commit(1)
    assert code(register(server, table.id, other.location, mode="Overwrite")) == (409, 5)
    assert table.ask("describe").json()["location"] == str(table.location)
    assert table.listed() == [1]


def test_an_unknown_mode_is_refused(server: Server, namespace: str, place: Path) -> None:
    assert code(register(server, f"{namespace}$t", place, mode="ExistOk")) == (400, 13)


def test_a_missing_namespace_is_said(server: Server, place: Path) -> None:
    assert code(register(server, "no$t", place)) == (404, 1)


@pytest.mark.parametrize("body", [{}, {"location": None}, {"location": ""}, {"location": 1}])
def test_a_location_is_needed(server: Server, namespace: str, body: dict[str, Any]) -> None:
    assert code(server.post(f"/v1/table/{namespace}$t/register", body)) == (400, 13)


def test_a_place_without_a_table_is_refused(server: Server, namespace: str) -> None:
    assert code(register(server, f"{namespace}$t", "nothing-here")) == (400, 13)
    assert code(server.post(f"/v1/table/{namespace}$t/exists")) == (404, 4)


def test_a_place_outside_the_lake_is_refused(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    place = write(tmp_path / "outside.lance")
    for form in (place, f"file://{place}", f"{server.lake}/../{place.name}", f"../{place.name}"):
        assert code(register(server, f"{namespace}$t", form)) == (400, 13)


def test_a_percent_encoded_climb_is_no_climb(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    write(server.data / "outside.lance")
    for form in ("%2e%2e/outside.lance", f"file://{server.lake}/%2e%2e/outside.lance"):
        assert code(register(server, f"{namespace}$t", form)) == (400, 13)


def test_a_link_out_of_the_lake_is_refused(server: Server, namespace: str, tmp_path: Path) -> None:
    write(tmp_path / "outside.lance")
    link = server.lake / new_name()
    link.symlink_to(tmp_path)
    assert code(register(server, f"{namespace}$t", f"{link}/outside.lance")) == (400, 13)
    inner = server.lake / new_name()
    inner.symlink_to(tmp_path / "outside.lance")
    assert code(register(server, f"{namespace}$t", inner.name)) == (400, 13)


def test_the_root_of_the_lake_is_no_table(server: Server, namespace: str) -> None:
    for form in (server.lake, ".", "./", "/"):
        assert code(register(server, f"{namespace}$t", form)) == (400, 13)


def test_a_sibling_of_the_lake_whose_name_begins_alike_is_refused(
    server: Server, namespace: str
) -> None:
    place = write(Path(f"{server.lake}-2") / "t.lance")
    assert code(register(server, f"{namespace}$t", place)) == (400, 13)


def test_a_place_belongs_to_one_table(server: Server, namespace: str, place: Path) -> None:
    write(place / "inner.lance")
    register(server, f"{namespace}$t", place).raise_for_status()
    for taken in (place, place / "inner.lance"):
        assert code(register(server, f"{namespace}$u", taken)) == (409, 5)


def test_a_place_around_a_table_is_refused(server: Server, namespace: str, place: Path) -> None:
    write(place / "inner.lance")
    register(server, f"{namespace}$t", place / "inner.lance").raise_for_status()
    assert code(register(server, f"{namespace}$u", place)) == (409, 5)


def test_further_roots_can_be_allowed(tmp_path: Path) -> None:
    place = write(tmp_path / "more" / "t.lance")
    write(tmp_path / "other" / "t.lance")
    roots = {"PENSTOCK__STORAGE__ALLOWED_ROOTS": f'["{tmp_path}/more"]'}
    with running(tmp_path / "data", environ=roots) as server:
        assert register(server, "t", place).json()["location"] == str(place)
        assert code(register(server, "u", tmp_path / "other" / "t.lance")) == (400, 13)
