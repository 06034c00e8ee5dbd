"""CreateTableVersion when somebody was first: repeats succeed, others learn what won."""

import os
from pathlib import Path

from tests.harness.data.manifests import commit_by_path, make_manifest
from tests.harness.data.tables import Table, code


def test_the_same_request_again_is_success(table: Table) -> None:
    staged = table.stage(1)
    first = table.create(1, staged, e_tag="e").json()
    again = table.create(1, staged, e_tag="e")
    assert again.status_code == 200
    assert again.json()["version"] == first["version"]
    assert table.listed() == [1]


def test_the_same_request_again_is_success_after_others_went_on(table: Table) -> None:
    staged = table.stage(1)
    table.create(1, staged).raise_for_status()
    table.commit(2, 3)
    assert table.create(1, staged).status_code == 200
    assert table.listed() == [1, 2, 3]


def test_the_same_bytes_under_another_staged_name_are_success(table: Table) -> None:
    content = make_manifest(1)
    table.create(1, table.stage(1, content=content)).raise_for_status()
    second = table.stage(1, content=content)
    assert table.create(1, second).status_code == 200
    assert table.staged_files() == []
    assert table.file(1).read_bytes() == content


def test_a_repeat_under_a_name_that_was_never_staged_is_no_success(table: Table) -> None:
    table.commit(1)
    staged = table.stage(1)
    os.remove(f"/{staged}")
    assert table.create(1, staged).status_code in (400, 409)


def test_other_content_loses_and_the_winner_can_be_described(table: Table) -> None:
    winner = make_manifest(1)
    table.create(1, table.stage(1, content=winner)).raise_for_status()
    loser = table.stage(1)
    assert code(table.create(1, loser)) == (409, 14)
    described = table.describe(1).json()["version"]
    assert Path("/" + described["manifest_path"]).read_bytes() == winner
    assert not Path(f"/{loser}").exists()


def test_an_older_version_is_a_conflict_too(table: Table) -> None:
    table.commit(1, 2, 3)
    before = table.file(2).read_bytes()
    assert code(table.create(2)) == (409, 14)
    assert table.file(2).read_bytes() == before


def test_the_other_naming_scheme_does_not_open_a_second_place(table: Table) -> None:
    table.commit(1)
    assert code(table.create(1, naming_scheme="V1")) == (409, 14)
    assert not table.file(1, scheme="V1").exists()


def test_a_version_committed_by_path_is_never_overwritten(table: Table) -> None:
    table.commit(1)
    taken = commit_by_path(table.location, 2)
    before = taken.read_bytes()
    loser = table.stage(2)
    assert code(table.create(2, loser)) == (409, 14)
    assert taken.read_bytes() == before
    assert not Path(f"/{loser}").exists()
    assert table.describe(2).status_code == 200


def test_the_first_version_may_have_been_committed_by_path(table: Table) -> None:
    before = commit_by_path(table.location, 1).read_bytes()
    assert code(table.create(1)) == (409, 14)
    assert table.file(1).read_bytes() == before
    assert table.listed() == [1]


def test_a_commit_by_path_in_the_other_scheme_is_seen(table: Table) -> None:
    table.commit(1, naming_scheme="V1")
    before = commit_by_path(table.location, 2, scheme="V2").read_bytes()
    assert code(table.create(2, naming_scheme="V1")) == (409, 14)
    assert table.file(2, scheme="V2").read_bytes() == before
    assert not table.file(2, scheme="V1").exists()


def test_commits_go_on_after_those_by_path(table: Table) -> None:
    table.commit(1)
    for version in (2, 3):
        commit_by_path(table.location, version)
    table.commit(4)
    assert table.listed() == [1, 2, 3, 4]


def test_a_table_full_of_commits_by_path_is_continued(table: Table) -> None:
    for version in (1, 2, 3):
        commit_by_path(table.location, version)
    table.commit(4)
    assert table.listed() == [1, 2, 3, 4]


def test_a_branch_committed_by_path_is_continued(table: Table) -> None:
    commit_by_path(table.location, 5, branch="dev")
    assert code(table.create(5, branch="dev")) == (409, 14)
    table.commit(6, branch="dev")
    assert table.listed(branch="dev") == [5, 6]


def test_an_identical_manifest_at_the_final_name_is_success(table: Table) -> None:
    content = make_manifest(1)
    table.file(1).parent.mkdir(parents=True)
    table.file(1).write_bytes(content)
    assert table.create(1, table.stage(1, content=content)).status_code == 200
    assert table.file(1).read_bytes() == content
    assert table.staged_files() == []
