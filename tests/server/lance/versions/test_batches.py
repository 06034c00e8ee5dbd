"""BatchCreateTableVersions: all or nothing, versions in order."""

from typing import Any

import pytest

from tests.harness.data.manifests import commit_by_path
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server

BATCH_CREATE, BATCH_COMMIT = "/v1/table/version/batch-create", "/v1/table/batch-commit"


def test_versions_of_several_tables_are_created_together(
    server: Server, tables: list[Table]
) -> None:
    entries = [t.entry(2, metadata={"of": t.id}) for t in reversed(tables)]
    answer = server.post(BATCH_CREATE, {"entries": entries}).json()
    assert [v["metadata"]["of"] for v in answer["versions"]] == [t.id for t in reversed(tables)]
    assert answer["transaction_id"]
    assert [t.listed() for t in tables] == [[1, 2]] * 3
    assert all(t.file(2).exists() and not t.staged_files() for t in tables)


def test_one_batch_may_hold_versions_of_one_table_that_follow_each_other(
    tables: list[Table],
) -> None:
    table = tables[0]
    entries = [table.entry(2), table.entry(3), table.entry(2, branch="dev")]
    table.server.post(BATCH_CREATE, {"entries": entries}).raise_for_status()
    assert table.listed() == [1, 2, 3]
    assert table.listed(branch="dev") == [2]


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize(("version", "wanted"), [(1, (409, 14)), (5, (400, 13))])
def test_no_version_is_created_when_one_fails(
    server: Server, tables: list[Table], failing: int, version: int, wanted: tuple[int, int]
) -> None:
    entries = [t.entry(version if n == failing else 2) for n, t in enumerate(tables)]
    assert code(server.post(BATCH_CREATE, {"entries": entries})) == wanted
    assert [t.listed() for t in tables] == [[1]] * 3
    assert not any(t.file(2).exists() for t in tables)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_no_version_is_created_when_a_commit_by_path_took_one(
    server: Server, tables: list[Table], failing: int
) -> None:
    before = commit_by_path(tables[failing].location, 2).read_bytes()
    body = {"entries": [t.entry(2) for t in tables]}
    assert code(server.post(BATCH_CREATE, body)) == (409, 14)
    assert [2 in t.listed() for t in tables] == [n == failing for n in range(3)]
    assert [t.file(2).exists() for t in tables] == [n == failing for n in range(3)]
    assert tables[failing].file(2).read_bytes() == before


def test_the_same_batch_again_is_success(server: Server, tables: list[Table]) -> None:
    body = {"entries": [t.entry(2) for t in tables]}
    first = server.post(BATCH_CREATE, body).json()
    again = server.post(BATCH_CREATE, body)
    assert again.status_code == 200
    assert again.json()["versions"] == first["versions"]


def test_a_refused_batch_works_once_it_is_corrected(server: Server, tables: list[Table]) -> None:
    good = [t.entry(2) for t in tables[:2]]
    assert server.post(BATCH_CREATE, {"entries": [*good, tables[2].entry(9)]}).is_error
    server.post(BATCH_CREATE, {"entries": [*good, tables[2].entry(2)]}).raise_for_status()
    assert [t.listed() for t in tables] == [[1, 2]] * 3


def test_a_version_given_twice_is_refused(server: Server, tables: list[Table]) -> None:
    body = {"entries": [tables[0].entry(2), tables[1].entry(2), tables[1].entry(2)]}
    assert code(server.post(BATCH_CREATE, body)) in [(400, 13), (409, 14)]
    assert [t.listed() for t in tables] == [[1]] * 3
    assert not any(t.file(2).exists() for t in tables)


def test_a_batch_needs_a_table_in_each_entry(server: Server, tables: list[Table]) -> None:
    for id in (None, [], ["x", ""]):
        body = {"entries": [tables[0].entry(2) | {"id": id}]}
        assert code(server.post(BATCH_CREATE, body)) == (400, 13)
    missing = tables[0].entry(2) | {"id": [*tables[0].parts[:-1], "no"]}
    assert code(server.post(BATCH_CREATE, {"entries": [missing]})) == (404, 4)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (BATCH_CREATE, {"entries": []}),
        (BATCH_CREATE, {}),
        (BATCH_CREATE, {"entries": {}}),
        (BATCH_COMMIT, {"operations": []}),
        (BATCH_COMMIT, {}),
        (BATCH_COMMIT, {"operations": [{}]}),
        (BATCH_COMMIT, {"operations": [None]}),
        (BATCH_COMMIT, {"operations": [{"unknown": {}}]}),
    ],
)
def test_an_empty_batch_is_refused(server: Server, path: str, body: dict[str, Any]) -> None:
    assert code(server.post(path, body)) == (400, 13)
