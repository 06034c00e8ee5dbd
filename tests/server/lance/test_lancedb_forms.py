"""The forms of lancedb's remote client beside the protocol's, told apart by what they are."""

import io
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, read_back, send, to_stream
from tests.harness.data.tables import code, new_name
from tests.harness.processes.servers import Server

ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


@pytest.fixture
def path(server: Server) -> str:
    """The path of a table with the persons 1, 2 and 3, and an index of their names."""
    name = new_name()
    send(server, f"/v1/table/{name}/create", people(1, 2, 3)).raise_for_status()
    body = {"column": "name", "index_type": "FTS", "name": "texts"}
    server.post(f"/v1/table/{name}/create_index", body).raise_for_status()
    return f"/v1/table/{name}"


def ids(answer: httpx.Response) -> list[int]:
    rows = pa.ipc.open_file(io.BytesIO(answer.raise_for_status().content)).read_all()
    found: list[int] = rows["id"].to_pylist()
    return found


def by_text(server: Server, path: str, **text: Any) -> httpx.Response:
    return server.post(f"{path}/query", {"full_text_query": text, "k": 9, "vector": []})


def test_words_come_in_both_forms(server: Server, path: str) -> None:
    assert ids(by_text(server, path, string_query={"query": "n2"})) == [2]
    assert ids(by_text(server, path, query="n2", columns=[])) == [2]
    assert ids(by_text(server, path, query="n2", columns=["name"])) == [2]


def test_clauses_come_in_both_forms(server: Server, path: str) -> None:
    clause = {"match": {"terms": "n2", "column": "name"}}
    assert ids(by_text(server, path, structured_query={"query": clause})) == [2]
    assert ids(by_text(server, path, query=clause)) == [2]
    several = {"query": "n2", "columns": ["name"], "boost": [2.0]}
    assert ids(by_text(server, path, query={"multi_match": several})) == [2]


@pytest.mark.parametrize(
    "text",
    [
        {"query": "n2", "string_query": {"query": "n2"}},
        {"query": {"match": {"terms": "n2"}}, "columns": ["name"]},
        {"query": {"multi_match": {"query": "n2", "columns": ["name"], "boost": [1.0, 2.0]}}},
        {"query": {"multi_match": {"query": "n2"}}},
        {"query": 7},
        {"columns": ["name"]},
        {"query": "x" * 10_001},
    ],
)
def test_a_text_query_that_is_neither_is_refused(server: Server, path: str, text: Any) -> None:
    answer = by_text(server, path, **text)
    assert code(answer) == (400, 13)
    assert answer.json()["detail"]


def test_tags_are_listed_in_the_form_of_the_path(server: Server, path: str) -> None:
    server.post(f"{path}/tags/create", {"tag": "first", "version": 1}).raise_for_status()
    known = server.post(f"{path}/tags/list").json()["tags"]
    assert server.post(f"{path}/tags/list/").json() == known
    assert known["first"]["version"] == 1


def test_changes_say_how_many_rows_they_changed(server: Server, path: str) -> None:
    body = {"updates": [["name", "'x'"]], "predicate": "id > 1"}
    done = server.post(f"{path}/update", body).json()
    assert done["updated_rows"] == done["rows_updated"] == 2
    assert server.post(f"{path}/delete", {"predicate": "id > 1"}).json()["num_deleted_rows"] == 2
    assert server.post(f"{path}/delete", {"predicate": "id > 9"}).json()["num_deleted_rows"] == 0


def test_an_index_is_replaced_where_lancedb_asks_for_it(server: Server, path: str) -> None:
    body = {"column": "name", "index_type": "FTS", "name": "texts"}
    assert code(server.post(f"{path}/create_index", body)) == (409, 7)
    assert server.post(f"{path}/create_index/", body).status_code == 200
    assert server.post(f"{path}/create_index", {**body, "replace": True}).status_code == 200
    assert code(server.post(f"{path}/create_index/", {**body, "replace": False})) == (409, 7)
    assert len(server.post(f"{path}/index/list").json()["indexes"]) == 1


def test_rows_are_sorted(server: Server, path: str) -> None:
    body = {"k": 2, "columns": ["id"], "order_by": [{"column_name": "id", "ascending": False}]}
    assert ids(server.post(f"{path}/query", body)) == [3, 2]
    assert ids(server.post(f"{path}/query", {**body, "k": None, "offset": 1})) == [2, 1]
    assert ids(server.post(f"{path}/query", {**body, "k": 0})) == []


def test_items_of_lists_have_no_order(server: Server) -> None:
    name = new_name()
    send(server, f"/v1/table/{name}/create", pa.table({"tags": [["a"]]})).raise_for_status()
    body = {"k": 1, "order_by": [{"column_name": "tags.item"}]}
    answer = server.post(f"/v1/table/{name}/query", body)
    assert (code(answer), "order_by" in answer.text) == ((400, 13), True)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ([{"column_name": "none"}], (404, 12)),
        ([{"column_name": ""}], (400, 13)),
        ([{"ascending": True}], (400, 13)),
        ([{"column_name": "id"}] * 65, (400, 13)),
        ("id", (400, 13)),
    ],
)
def test_an_order_that_cannot_be_is_refused(
    server: Server, path: str, order: Any, expected: tuple[int, int]
) -> None:
    assert code(server.post(f"{path}/query", {"k": 1, "order_by": order})) == expected


def test_columns_without_values_come_as_a_schema(server: Server, path: str) -> None:
    fields = pa.schema([pa.field("price", pa.decimal128(9, 2)), pa.field("note", pa.string())])
    body = to_stream(fields.empty_table())
    assert server.send(f"{path}/add_columns/", body, ARROW).json()["version"] == 3
    row = read_back(server, path.rpartition("/")[2])[0]
    assert (row["price"], row["note"]) == (None, None)


@pytest.mark.parametrize(
    "columns",
    [
        pa.schema([pa.field("id", pa.int64())]).empty_table(),
        pa.schema([pa.field("x", pa.int64(), nullable=False)]).empty_table(),
        pa.schema([pa.field("x", pa.null())]).empty_table(),
        pa.schema([pa.field("x", pa.int8(), metadata={"penstock.binding": "b"})]).empty_table(),
        pa.schema([]).empty_table(),
        pa.table({"x": [1]}),
    ],
    ids=["known", "not nullable", "null", "reserved", "none", "with rows"],
)
def test_columns_that_cannot_be_added_are_refused(
    server: Server, path: str, columns: pa.Table
) -> None:
    answer = server.send(f"{path}/add_columns/", to_stream(columns), ARROW)
    assert answer.status_code == 400
    assert answer.json()["detail"]
    assert server.post(f"{path}/version/list").json()["versions"][-1]["version"] == 2


def test_a_body_that_is_no_stream_is_refused(server: Server, path: str) -> None:
    assert code(server.send(f"{path}/add_columns/", b"{}", ARROW)) == (400, 13)


def test_a_missing_column_does_not_look_like_a_missing_table(server: Server, path: str) -> None:
    body = {"predicate": "none = 1"}
    assert code(server.post(f"{path}/count_rows", body)) == (404, 12)
    assert code(server.post(f"{path}/count_rows/", body)) == (400, 12)
    assert code(server.post(f"{path}/tags/version/", {"tag": "none"}))[0] == 400
    assert code(server.post("/v1/table/none/count_rows/")) == (404, 4)


def test_clients_are_told_which_forms_are_understood(server: Server, path: str) -> None:
    assert server.post(f"{path}/describe/").headers["phalanx-version"]
    assert "phalanx-version" not in server.post(f"{path}/describe").headers


def test_no_table_has_log_structured_writes(server: Server, path: str) -> None:
    assert server.post(f"{path}/get_lsm_write_spec/").json() == {"lsm_write_spec": None}
    assert server.post(f"{path}/get_lsm_stats/").json() == {"lsm_stats": None}
    for what in ("set_lsm_write_spec", "unset_lsm_write_spec", "flush_lsm", "compact_lsm"):
        assert code(server.post(f"{path}/{what}/")) == (406, 0)
    assert code(server.post("/v1/table/none/get_lsm_stats/")) == (404, 4)


def test_hints_are_taken(server: Server, path: str) -> None:
    assert server.post(f"{path}/index/texts/prewarm/").status_code == 200
    assert code(server.post(f"{path}/index/none/prewarm/")) == (404, 6)
    assert server.post(f"{path}/page_cache/prewarm/", {"columns": ["id"]}).status_code == 200
    assert code(server.post(f"{path}/page_cache/prewarm/", {"columns": ["none"]})) == (400, 12)


def test_chosen_columns_come_with_their_score_and_nothing_is_logged(
    server: Server, path: str
) -> None:
    server.output()
    for columns in (["id"], {"id": "id"}):
        body = {"full_text_query": {"query": "n2"}, "columns": columns}
        answer = server.post(f"{path}/query", body)
        rows = pa.ipc.open_file(io.BytesIO(answer.content)).read_all()
        assert rows.column_names == ["id", "_score"]
    assert "WARN" not in server.output()
