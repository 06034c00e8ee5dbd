"""ListTableVersions and DescribeTableVersion, and how they follow what lies on storage."""

from typing import Any

import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import Table, code, declare


def test_a_declared_table_has_no_versions(table: Table) -> None:
    assert table.listed() == []
    assert code(table.describe()) == (404, 11)
    assert code(table.describe(1)) == (404, 11)


def test_the_newest_is_described_when_none_is_named(table: Table) -> None:
    table.commit(1, 2, 3)
    assert table.describe().json()["version"]["version"] == 3
    assert table.ask("version/describe").json()["version"]["version"] == 3


@pytest.mark.parametrize(("descending", "order"), [("true", [3, 2, 1]), ("false", [1, 2, 3])])
def test_versions_are_listed_in_the_order_asked_for(
    table: Table, descending: str, order: list[int]
) -> None:
    table.commit(1, 2, 3)
    assert table.listed(descending=descending) == order


@pytest.mark.parametrize("descending", [False, True])
def test_versions_come_in_pages(table: Table, descending: bool) -> None:
    table.commit(1, 2, 3, 4, 5)
    found, params = [], {"limit": 2, "descending": descending}
    while True:
        page = table.ask("version/list", **params).json()
        found.append([v["version"] for v in page["versions"]])
        if not page.get("page_token"):
            break
        params["page_token"] = page["page_token"]
    assert found == ([[5, 4], [3, 2], [1]] if descending else [[1, 2], [3, 4], [5]])


def test_a_page_stays_in_place_while_versions_are_added(table: Table) -> None:
    table.commit(1, 2, 3)
    first = table.ask("version/list", limit=2, descending=True).json()
    table.commit(4)
    assert table.listed(limit=2, descending=True, page_token=first["page_token"]) == [1]


def test_the_newest_alone_is_listed_as_the_sdk_asks(table: Table) -> None:
    table.commit(1, 2, 3)
    assert table.listed(limit=1, descending=True) == [3]


def test_a_token_of_another_listing_is_refused(table: Table) -> None:
    table.commit(1, 2, 3)
    token = table.ask("version/list", limit=1).json()["page_token"]
    for other in ({"descending": True}, {"branch": "dev"}):
        assert code(table.ask("version/list", page_token=token, **other)) == (400, 13)


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": -1},
        {"limit": "ten"},
        {"page_token": "nonsense"},
        {"page_token": "1"},
        {"descending": "maybe"},
        {"branch": "../x"},
    ],
)
def test_bad_parameters_are_refused(table: Table, params: dict[str, Any]) -> None:
    assert code(table.ask("version/list", **params)) == (400, 13)


def test_a_missing_table_or_namespace_is_said(table: Table) -> None:
    for operation in ("list", "describe"):
        post = table.server.post
        assert code(post(f"/v1/table/{table.parts[0]}$no/version/{operation}")) == (404, 4)
        assert code(post(f"/v1/table/no$no/version/{operation}")) == (404, 1)


@pytest.mark.parametrize("how", [{}, {"limit": 1, "descending": True}])
def test_versions_committed_by_path_are_listed(table: Table, how: dict[str, Any]) -> None:
    table.commit(1)
    table.settle()
    commit_by_path(table.location, 2)
    assert max(table.listed(**how)) == 2


def test_a_first_version_committed_by_path_is_listed(table: Table) -> None:
    commit_by_path(table.location, 1)
    assert table.listed(limit=1, descending=True) == [1]


@pytest.mark.parametrize("version", [2, None])
def test_a_version_committed_by_path_is_described(table: Table, version: int | None) -> None:
    table.commit(1)
    table.settle()
    content = commit_by_path(table.location, 2).read_bytes()
    found = table.describe(version).json()["version"]
    assert found["version"] == 2
    assert found["manifest_path"] == str(table.file(2)).lstrip("/")
    assert found["manifest_size"] == len(content)


def test_several_versions_committed_by_path_are_adopted_in_one_go(table: Table) -> None:
    table.commit(1)
    table.settle()
    for version in (2, 3, 4):
        commit_by_path(table.location, version)
    assert table.describe(4).status_code == 200
    assert table.listed() == [1, 2, 3, 4]


def test_versions_on_a_branch_by_path_are_adopted(table: Table) -> None:
    table.commit(1)
    commit_by_path(table.location, 2, branch="dev")
    assert table.listed(branch="dev") == [2]
    assert table.listed() == [1]


def test_a_version_by_path_in_the_other_scheme_is_adopted(table: Table) -> None:
    table.commit(1, naming_scheme="V1")
    table.settle()
    commit_by_path(table.location, 2, scheme="V2")
    assert table.describe().json()["version"]["version"] == 2
    assert table.listed(limit=1, descending=True) == [2]


def test_manifests_renamed_to_the_other_scheme_by_path_are_followed(table: Table) -> None:
    table.commit(1, 2, naming_scheme="V1")
    table.settle()
    for version in (1, 2):
        table.file(version, scheme="V1").rename(table.file(version, scheme="V2"))
    renamed = [str(table.file(version)).lstrip("/") for version in (1, 2)]
    assert table.describe(1).json()["version"]["manifest_path"] == renamed[0]
    listed = table.ask("version/list").json()["versions"]
    assert [version["manifest_path"] for version in listed] == renamed


def test_a_version_whose_file_was_cleaned_up_is_gone(table: Table) -> None:
    table.commit(1, 2, 3)
    table.settle()
    table.file(1).unlink()
    assert table.listed() == [2, 3]
    assert code(table.describe(1)) == (404, 11)


@pytest.mark.parametrize("version", [3, None])
def test_a_newest_version_removed_by_path_is_gone(table: Table, version: int | None) -> None:
    table.commit(1, 2, 3)
    table.settle()
    table.file(3).unlink()
    found = table.describe(version)
    assert found.status_code == 404 or found.json()["version"]["version"] == 2
    assert table.listed(limit=1, descending=True) == [2]


def test_a_cleaned_up_version_is_gone_from_describe_first(table: Table) -> None:
    table.commit(1, 2)
    table.settle()
    table.file(1).unlink()
    assert code(table.describe(1)) == (404, 11)
    assert table.listed() == [2]


def test_commits_go_on_after_a_clean_up(table: Table) -> None:
    table.commit(1, 2, 3)
    table.settle()
    for version in (1, 2):
        table.file(version).unlink()
    table.commit(4)
    assert table.listed() == [3, 4]


def test_other_files_beside_the_manifests_are_no_versions(table: Table) -> None:
    table.commit(1)
    folder = table.file(1).parent
    for name in ("_latest.manifest", "latest_version_hint.json", "2.manifest.tmp", "x.manifest"):
        (folder / name).write_bytes(b"x")
    (folder / f"d{2**63 + 7}.manifest").write_bytes(b"x")
    assert table.listed() == [1]


def test_an_unmanaged_table_lists_what_lies_on_storage(table: Table) -> None:
    plain = declare(
        table.server, f"{table.id}2", properties={"penstock.managed_versioning": "false"}
    )
    for version in (1, 2):
        commit_by_path(plain.location, version)
    assert plain.listed() == [1, 2]
    assert plain.describe().json()["version"]["version"] == 2
