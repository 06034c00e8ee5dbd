"""BatchDeleteTableVersions: ranges of records go, and history goes on."""

from typing import Any

import pytest

from tests.harness.data.tables import Table, code


def ranges(*pairs: tuple[int, int]) -> dict[str, Any]:
    return {"ranges": [{"start_version": start, "end_version": end} for start, end in pairs]}


@pytest.fixture
def five(table: Table) -> Table:
    """A table with the versions 1 to 5."""
    table.commit(1, 2, 3, 4, 5)
    return table


@pytest.mark.parametrize(
    ("pairs", "left"),
    [
        ([(1, 3)], [3, 4, 5]),
        ([(2, 3)], [1, 3, 4, 5]),
        ([(0, 2), (3, 4)], [2, 4, 5]),
        ([(4, -1)], [1, 2, 3]),
        ([(5, 6)], [1, 2, 3, 4]),
        ([(0, -1)], []),
        ([(0, 100)], []),
        ([(7, 9)], [1, 2, 3, 4, 5]),
        ([(3, 3)], [1, 2, 3, 4, 5]),
        ([(1, 3), (2, 4)], [4, 5]),
        ([], [1, 2, 3, 4, 5]),
    ],
)
def test_a_range_ends_before_its_end(
    five: Table, pairs: list[tuple[int, int]], left: list[int]
) -> None:
    answer = five.ask("version/delete", ranges(*pairs)).json()
    assert answer["deleted_count"] == 5 - len(left)
    assert five.listed() == left


def test_describe_agrees_with_list(five: Table) -> None:
    five.ask("version/delete", ranges((2, 4))).raise_for_status()
    found = {v: five.describe(v).status_code for v in range(1, 6)}
    assert found == {1: 200, 2: 404, 3: 404, 4: 200, 5: 200}
    assert code(five.describe(2)) == (404, 11)


def test_the_newest_left_is_described_when_none_is_named(five: Table) -> None:
    five.ask("version/delete", ranges((5, -1))).raise_for_status()
    assert five.describe().json()["version"]["version"] == 4
    assert five.listed(limit=1, descending=True) == [4]


@pytest.mark.parametrize("pair", [(1, 3), (5, -1), (0, -1)])
def test_the_next_commit_works(five: Table, pair: tuple[int, int]) -> None:
    five.ask("version/delete", ranges(pair)).raise_for_status()
    five.commit(6)
    assert five.listed()[-1] == 6


def test_a_second_delete_finds_nothing(five: Table) -> None:
    five.ask("version/delete", ranges((1, 3))).raise_for_status()
    assert five.ask("version/delete", ranges((1, 3))).json()["deleted_count"] == 0


def test_deleting_everything_is_told_in_a_transaction(five: Table) -> None:
    transaction = five.ask("version/delete", ranges((0, -1))).json()["transaction_id"]
    assert five.server.post(f"/v1/transaction/{transaction}/describe").status_code == 200


def test_only_the_named_branch_is_touched(five: Table) -> None:
    five.commit(6, 7, branch="dev")
    answer = five.ask("version/delete", ranges((0, -1)) | {"branch": "dev"}).json()
    assert answer["deleted_count"] == 2
    assert five.listed(branch="dev") == []
    assert five.listed() == [1, 2, 3, 4, 5]


def test_a_lost_race_against_a_deleted_version_can_be_described(five: Table) -> None:
    five.ask("version/delete", ranges((5, -1))).raise_for_status()
    before = five.file(5).read_bytes() if five.file(5).exists() else None
    assert code(five.create(5)) == (409, 14)
    assert five.describe(5).status_code == 200
    assert before is None or five.file(5).read_bytes() == before


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ranges": None},
        {"ranges": [{}]},
        {"ranges": [{"start_version": 3, "end_version": 1}]},
        {"ranges": [{"start_version": 1, "end_version": -2}]},
        {"ranges": [{"start_version": -1, "end_version": 2}]},
        {"ranges": [{"start_version": "1", "end_version": 2}]},
        {"ranges": [], "branch": "../x"},
    ],
)
def test_bad_ranges_are_refused_and_nothing_is_deleted(five: Table, body: dict[str, Any]) -> None:
    assert code(five.ask("version/delete", body)) == (400, 13)
    assert five.listed() == [1, 2, 3, 4, 5]


def test_a_missing_table_or_namespace_is_said(table: Table) -> None:
    post, body = table.server.post, ranges((0, -1))
    assert code(post(f"/v1/table/{table.parts[0]}$no/version/delete", body)) == (404, 4)
    assert code(post("/v1/table/no$no/version/delete", body)) == (404, 1)
