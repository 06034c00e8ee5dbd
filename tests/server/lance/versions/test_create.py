"""CreateTableVersion: who may commit what, and what lies on storage afterwards."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.data.manifests import make_manifest
from tests.harness.data.tables import Table, code


def test_a_version_gets_its_final_name_and_leaves_nothing_staged(table: Table) -> None:
    staged = table.stage(1)
    content = Path(f"/{staged}").read_bytes()
    answer = table.create(1, staged, manifest_size=len(content), naming_scheme="V2").json()
    assert answer["version"]["manifest_path"] == str(table.file(1)).lstrip("/")
    assert answer["version"]["manifest_size"] == len(content)
    assert table.file(1).read_bytes() == content
    assert table.staged_files() == []


def test_versions_follow_each_other(table: Table) -> None:
    table.commit(1, 2, 3)
    assert table.listed(descending=True) == [3, 2, 1]
    assert all(table.file(v).exists() for v in (1, 2, 3))


def test_metadata_e_tag_and_the_manifests_time_are_returned(table: Table) -> None:
    fields: dict[str, Any] = {"metadata": {"writer": "ann"}, "e_tag": '"abc"'}
    created = table.create(1, **fields).json()["version"]
    described = table.describe(1).json()["version"]
    listed = table.ask("version/list").json()["versions"]
    assert created == described == listed[0]
    assert {name: created[name] for name in fields} == fields
    assert created["timestamp_millis"] == 1_700_000_000_005


def test_the_transaction_is_the_one_in_the_manifest(table: Table) -> None:
    staged = table.stage(1, content=make_manifest(1, transaction="6d1f-77"))
    transaction = table.create(1, staged).json()["transaction_id"]
    assert transaction == "6d1f-77"
    assert table.server.post(f"/v1/transaction/{transaction}/describe").status_code == 200


@pytest.mark.parametrize(
    ("scheme", "name"), [("V1", "1.manifest"), ("V2", f"{2**64 - 2}.manifest")]
)
def test_the_naming_scheme_decides_the_final_name(table: Table, scheme: str, name: str) -> None:
    answer = table.create(1, naming_scheme=scheme).json()
    assert Path(answer["version"]["manifest_path"]).name == name
    assert (table.location / "_versions" / name).exists()


def test_without_a_scheme_the_staged_name_tells_it(table: Table) -> None:
    table.create(1, table.stage(1, scheme="V1")).raise_for_status()
    assert table.file(1, scheme="V1").exists()


def test_an_unknown_scheme_is_refused(table: Table) -> None:
    assert code(table.create(1, table.stage(1), naming_scheme="V9")) == (400, 13)


@pytest.mark.parametrize("form", ["/{0}", "file:///{0}", "{0}"])
def test_the_staged_path_may_be_written_in_any_usual_form(table: Table, form: str) -> None:
    table.create(1, form.format(table.stage(1))).raise_for_status()
    assert table.file(1).exists()


def test_the_staged_path_may_be_relative_to_the_table(table: Table) -> None:
    staged = Path(table.stage(1)).name
    table.create(1, f"_versions/{staged}").raise_for_status()
    assert table.file(1).exists()


def test_branches_have_lines_of_their_own(table: Table) -> None:
    table.commit(1, 2)
    table.commit(3, 4, branch="dev")
    assert table.listed() == [1, 2]
    assert table.listed(branch="dev") == [3, 4]
    assert table.file(4, "dev").exists()
    assert table.describe(4, branch="dev").json()["version"]["version"] == 4
    assert code(table.describe(4)) == (404, 11)


def test_main_may_be_named(table: Table) -> None:
    table.create(1, table.stage(1), branch="main").raise_for_status()
    assert table.listed() == table.listed(branch="main") == [1]


def test_a_branch_name_may_have_several_parts(table: Table) -> None:
    table.commit(1, branch="team/dev")
    assert table.listed(branch="team/dev") == [1]
    assert table.file(1, "team/dev").exists()


@pytest.mark.parametrize("branch", ["..", "a/../b", "/a", "a/", "a b", "a\x00"])
def test_illegal_branches_are_refused(table: Table, branch: str) -> None:
    assert code(table.create(1, table.stage(1), branch=branch)) == (400, 13)


def test_a_gap_is_refused_and_the_staged_file_stays(table: Table) -> None:
    table.commit(1)
    staged = table.stage(3)
    assert code(table.create(3, staged)) == (400, 13)
    assert Path(f"/{staged}").exists()
    assert table.listed() == [1]


def test_a_missing_staged_file_is_refused(table: Table) -> None:
    staged = table.stage(1)
    os.remove(f"/{staged}")
    assert code(table.create(1, staged)) == (400, 13)
    assert table.listed() == []


def _damage(version: int) -> dict[str, bytes]:
    whole = make_manifest(version)
    return {
        "no footer": b"x" * 100,
        "empty": b"",
        "cut at its end": whole[:-1],
        "cut at its start": whole[20:],
        "another version": make_manifest(version + 1),
        "no version": make_manifest(0),
        "another branch": make_manifest(version, branch="dev"),
        "a footer that points outside": whole[:-16] + b"\xff" * 8 + whole[-8:],
    }


@pytest.mark.parametrize("damage", sorted(_damage(1)))
def test_what_is_not_this_versions_manifest_is_refused_and_kept(table: Table, damage: str) -> None:
    content = _damage(1)[damage]
    staged = table.stage(1, content=content)
    assert code(table.create(1, staged)) == (400, 13)
    assert Path(f"/{staged}").read_bytes() == content
    assert table.listed() == []
    assert not table.file(1).exists()


def test_a_wrong_size_is_refused(table: Table) -> None:
    staged = table.stage(1)
    assert code(table.create(1, staged, manifest_size=7)) == (400, 13)
    assert Path(f"/{staged}").exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"version": 1},
        {"manifest_path": "x"},
        {"version": -1, "manifest_path": "x"},
        {"version": 2**64, "manifest_path": "x"},
        {"version": "1", "manifest_path": "x"},
        {"version": 1, "manifest_path": ""},
        {"version": 1, "manifest_path": "a\x00b"},
        {"version": 1, "manifest_path": None},
        {"version": 1, "manifest_path": "x", "metadata": {"a": 1}},
    ],
)
def test_a_bad_body_is_refused(table: Table, body: dict[str, Any]) -> None:
    assert code(table.ask("version/create", body)) == (400, 13)


def test_version_zero_does_not_exist(table: Table) -> None:
    assert code(table.create(0)) == (400, 13)


def test_a_missing_table_or_namespace_is_said(table: Table) -> None:
    body = {"version": 1, "manifest_path": table.stage(1)}
    post = table.server.post
    assert code(post(f"/v1/table/{table.parts[0]}$none/version/create", body)) == (404, 4)
    assert code(post("/v1/table/none$none/version/create", body)) == (404, 1)
