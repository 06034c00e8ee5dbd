"""MergeInsertIntoTable, UpdateTable and DeleteFromTable."""

from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, read_back, send, versions
from tests.harness.processes.servers import Server

BOTH = {"when_matched_update_all": "true", "when_not_matched_insert_all": "true"}


@pytest.fixture
def table(server: Server, namespace: str) -> str:
    """A table with the persons 1, 2 and 3, and a branch `dev` of it."""
    made = send(server, f"/v1/table/{namespace}$t/create", people(1, 2, 3)).json()
    lance.dataset(made["location"]).create_branch("dev")
    return f"{namespace}$t"


def ids(rows: list[dict[str, object]]) -> list[object]:
    return [row["id"] for row in rows]


def test_a_merge_updates_what_matches_and_inserts_the_rest(server: Server, table: str) -> None:
    answer = send(
        server, f"/v1/table/{table}/merge_insert", people(3, 4, name="m"), on="id", **BOTH
    ).json()
    assert (answer["num_updated_rows"], answer["num_inserted_rows"]) == (1, 1)
    assert answer["num_deleted_rows"] == 0
    assert read_back(server, table)[2:] == people(3, 4, name="m").to_pylist()
    assert versions(server, table)[-1] == answer["version"]


def test_a_merge_filter_says_which_matches_are_updated(server: Server, table: str) -> None:
    params = {"when_matched_update_all_filt": "target.id > 2", "on": "id", **BOTH}
    send(server, f"/v1/table/{table}/merge_insert", people(2, 3, name="m"), **params)
    assert [row["name"] for row in read_back(server, table)] == ["n1", "n2", "m3"]


def test_a_merge_deletes_what_the_source_lacks(server: Server, table: str) -> None:
    params = {
        "on": "id",
        "when_not_matched_by_source_delete": "true",
        "when_not_matched_by_source_delete_filt": "id < 2",
    }
    answer = send(server, f"/v1/table/{table}/merge_insert", people(3), **params).json()
    assert answer["num_deleted_rows"] == 1
    assert ids(read_back(server, table)) == [2, 3]


def test_a_merge_takes_several_keys(server: Server, table: str) -> None:
    rows = pa.table({"id": [1, 1], "name": ["n1", "other"]})
    params = {"on": ["id", "name"], "when_not_matched_insert_all": "true"}
    answer = send(server, f"/v1/table/{table}/merge_insert", rows, **params).json()
    assert answer["num_inserted_rows"] == 1


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (BOTH, (400, 13)),
        ({"on": "id"}, (400, 13)),
        ({"on": "nope", **BOTH}, (404, 12)),
        ({"on": "id", "timeout": "soon", **BOTH}, (400, 13)),
        ({"on": "id", "branch": "none", **BOTH}, (404, 22)),
        ({"on": "id", "when_matched_update_all_filt": "target.", **BOTH}, (400, 13)),
    ],
)
def test_a_merge_that_cannot_be_is_refused(
    server: Server, table: str, params: dict[str, str], expected: tuple[int, int]
) -> None:
    answer = send(server, f"/v1/table/{table}/merge_insert", people(1), **params)
    assert (answer.status_code, answer.json()["code"]) == expected
    assert versions(server, table) == [1]


@pytest.mark.parametrize("extra", [{"timeout": "30s"}, {"use_index": "false"}])
def test_a_merge_takes_a_timeout_and_an_index_choice(
    server: Server, table: str, extra: dict[str, str]
) -> None:
    params = {"on": "id", **BOTH, **extra}
    assert send(server, f"/v1/table/{table}/merge_insert", people(9), **params).status_code == 200


def test_an_update_sets_expressions_where_the_predicate_holds(server: Server, table: str) -> None:
    body = {"updates": [["name", "concat(name, '!')"]], "predicate": "id > 1"}
    answer = server.post(f"/v1/table/{table}/update", body).json()
    assert (answer["updated_rows"], answer["version"]) == (2, 2)
    assert [row["name"] for row in read_back(server, table)] == ["n1", "n2!", "n3!"]


def test_an_update_without_predicate_changes_all(server: Server, table: str) -> None:
    body = {"updates": [["id", "id + 10"]]}
    assert server.post(f"/v1/table/{table}/update", body).json()["updated_rows"] == 3


def test_a_delete_takes_the_rows_that_match(server: Server, table: str) -> None:
    answer = server.post(f"/v1/table/{table}/delete", {"predicate": "id = 2"})
    assert answer.json()["version"] == 2
    assert ids(read_back(server, table)) == [1, 3]


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("update", {"updates": []}, (400, 13)),
        ("update", {"updates": [["nope", "1"]]}, (404, 12)),
        ("update", {"updates": [["id", "1"], ["id", "2"]]}, (400, 13)),
        ("update", {"updates": [["id", "'"]]}, (400, 13)),
        ("update", {"updates": [["id", "1"]], "predicate": "id <"}, (400, 13)),
        ("update", {"updates": [["id", "1"]], "branch": "none"}, (404, 22)),
        ("delete", {}, (400, 13)),
        ("delete", {"predicate": " "}, (400, 13)),
        ("delete", {"predicate": "nope = 1"}, (404, 12)),
        ("delete", {"predicate": "id ="}, (400, 13)),
        ("delete", {"predicate": "id = " + "1+" * 2000 + "1"}, (400, 13)),
        ("update", {"updates": [["id", "1+" * 2000 + "1"]]}, (400, 13)),
        ("delete", {"predicate": "true", "branch": "none"}, (404, 22)),
    ],
)
def test_a_change_that_cannot_be_is_refused(
    server: Server, table: str, operation: str, body: dict[str, object], expected: tuple[int, int]
) -> None:
    answer = server.post(f"/v1/table/{table}/{operation}", body)
    assert (answer.status_code, answer.json()["code"]) == expected
    assert versions(server, table) == [1]


@pytest.mark.parametrize("operation", ["update", "delete"])
def test_a_declared_table_has_nothing_to_change(
    server: Server, namespace: str, operation: str
) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    body = {"updates": [["id", "1"]], "predicate": "true"}
    answer = server.post(f"/v1/table/{namespace}$d/{operation}", body)
    assert (answer.status_code, answer.json()["code"]) == (400, 19)


@pytest.mark.parametrize("key", [pa.int64(), pa.string(), pa.list_(pa.int64())], ids=str)
def test_rows_of_one_key_are_refused(server: Server, namespace: str, key: pa.DataType) -> None:
    values = {pa.int64(): [1, 1], pa.string(): ["a", "a"]}.get(key, [[1], [1]])
    rows = pa.table({"key": pa.array(values, key), "n": [1, 2]})
    send(server, f"/v1/table/{namespace}$t/create", rows)
    answer = send(server, f"/v1/table/{namespace}$t/merge_insert", rows, on="key", **BOTH)
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert "2 of the rows have one key" in answer.json()["error"]
    assert versions(server, f"{namespace}$t") == [1]


def test_merges_at_once_create_a_declared_table_with_each_key_once(
    server: Server, namespace: str
) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    path = f"/v1/table/{namespace}$d/merge_insert"
    with ThreadPoolExecutor(4) as pool:
        merge = [people(1, 2, name="m"), people(2, 3, name="m"), people(3, 4, name="m")]
        answers = list(pool.map(lambda rows: send(server, path, rows, on="id", **BOTH), merge))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert read_back(server, f"{namespace}$d") == people(1, 2, 3, 4, name="m").to_pylist()


def test_a_long_merge_creates_a_declared_table(server: Server, namespace: str) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    rows = people(*range(60_000), name="a name that makes it long ")
    answer = send(server, f"/v1/table/{namespace}$d/merge_insert", rows, on="id", **BOTH)
    assert answer.json()["num_inserted_rows"] == 60_000
    assert read_back(server, f"{namespace}$d") == rows.to_pylist()


def test_a_merge_by_an_unknown_key_leaves_a_declared_table_as_it_is(
    server: Server, namespace: str
) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    answer = send(server, f"/v1/table/{namespace}$d/merge_insert", people(1), on="no", **BOTH)
    assert (answer.status_code, answer.json()["code"]) == (404, 12)
    assert versions(server, f"{namespace}$d") == []


def test_changes_of_a_branch_never_touch_main(server: Server, table: str) -> None:
    server.post(f"/v1/table/{table}/delete", {"predicate": "id = 1", "branch": "dev"})
    update = {"updates": [["name", "'b'"]], "branch": "dev"}
    server.post(f"/v1/table/{table}/update", update).raise_for_status()
    send(server, f"/v1/table/{table}/merge_insert", people(9), on="id", branch="dev", **BOTH)
    assert read_back(server, table) == people(1, 2, 3).to_pylist()
    assert versions(server, table) == [1]
    assert ids(read_back(server, table, "dev")) == [2, 3, 9]
