"""QueryTable: scans, with what every query has; each result compared with pylance's own."""

import lance
import pyarrow as pa
import pytest

from tests.harness.data.rows import documents, ids, put, query
from tests.harness.data.tables import Table, code, declare
from tests.harness.processes.servers import Server

Pair = tuple[Table, lance.LanceDataset]


@pytest.fixture(scope="module")
def pair(server: Server) -> Pair:
    return put(server, documents())


def test_all_rows_come_back_as_an_arrow_file(pair: Pair) -> None:
    table, dataset = pair
    assert query(table) == dataset.to_table()


def test_a_filter_chooses_rows(pair: Pair) -> None:
    table, dataset = pair
    found = query(table, filter="id >= 190 AND info.x < 195", k=100)
    assert found == dataset.to_table(filter="id >= 190 AND info.x < 195")
    assert found.num_rows == 5


def test_k_rows_come_after_the_offset(pair: Pair) -> None:
    table, _ = pair
    assert ids(query(table, k=3)) == [0, 1, 2]
    assert ids(query(table, k=3, offset=5)) == [5, 6, 7]
    assert ids(query(table, offset=198)) == [198, 199]
    assert ids(query(table, k=2**63 - 1, offset=198)) == [198, 199]
    assert ids(query(table, k=3, offset=500)) == []


def test_no_rows_still_have_their_columns(pair: Pair) -> None:
    table, dataset = pair
    assert query(table, k=0).schema == dataset.schema
    assert query(table, filter="id < 0").num_rows == 0


@pytest.mark.parametrize(
    "columns",
    [{"column_names": ["title", "id"]}, ["title", "id"]],
)
def test_columns_are_chosen_by_name(pair: Pair, columns: object) -> None:
    table, dataset = pair
    assert query(table, columns=columns) == dataset.to_table(columns=["title", "id"])


@pytest.mark.parametrize("wrapped", [True, False])
def test_columns_are_made_by_expressions(pair: Pair, wrapped: bool) -> None:
    table, dataset = pair
    made = {"double": "id * 2", "x": "info.x", "loud": "upper(title)"}
    found = query(table, columns={"column_aliases": made} if wrapped else made, k=4)
    assert found == dataset.to_table(columns=made, limit=4)
    assert found["double"].to_pylist() == [0, 2, 4, 6]


@pytest.mark.parametrize("columns", [None, [], {}, {"column_names": [], "column_aliases": {}}])
def test_no_choice_of_columns_means_all(pair: Pair, columns: object) -> None:
    table, dataset = pair
    assert query(table, columns=columns, k=2).schema == dataset.schema


def test_nested_columns_have_paths(pair: Pair) -> None:
    table, dataset = pair
    found = query(table, columns=["info.x", "info.`y`"], k=3)
    assert found == dataset.to_table(columns=["info.x", "info.`y`"], limit=3)


def test_row_ids_come_on_request(pair: Pair) -> None:
    table, dataset = pair
    assert query(table, with_row_id=True, k=5) == dataset.to_table(with_row_id=True, limit=5)


def test_an_older_version_is_read(server: Server) -> None:
    table, dataset = put(server, documents(3))
    dataset.delete("id = 1")
    assert ids(query(table)) == [0, 2]
    assert ids(query(table, version=1)) == [0, 1, 2]
    assert code(table.ask("query", {"version": 9})) == (404, 11)


def test_a_branch_is_read(server: Server) -> None:
    table, dataset = put(server, documents(3))
    branch = dataset.create_branch("dev")
    branch.delete("id = 0")
    assert ids(query(table, branch="dev")) == [1, 2]
    assert ids(query(table, branch="main")) == [0, 1, 2]
    assert code(table.ask("query", {"branch": "other"})) == (404, 22)


def test_values_of_dictionaries_go_out_plain(server: Server) -> None:
    first = pa.table({"id": [1, 2], "d": pa.array(["a", "b"]).dictionary_encode()})
    table, dataset = put(server, first)
    dataset.insert(pa.table({"id": [3], "d": pa.array(["c"]).dictionary_encode()}))
    assert query(table)["d"].to_pylist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"columns": ["nope"]}, (404, 12)),
        ({"columns": ["info.nope"]}, (404, 12)),
        ({"columns": {"a": "nope + 1"}}, (404, 12)),
        ({"filter": "nope = 1"}, (404, 12)),
        ({"filter": "id >"}, (400, 13)),
        ({"filter": ""}, (400, 13)),
        ({"filter": "title"}, (400, 13)),
        ({"filter": "id > 'abc'"}, (400, 13)),
        ({"filter": "no_such_function(id)"}, (400, 13)),
        ({"filter": "id / 0 = 1"}, (400, 13)),
        ({"filter": "id IN (SELECT 1)"}, (400, 13)),
        ({"columns": {"a": "CAST(title AS INT)"}}, (400, 13)),
        ({"columns": {"a": "sum(id)"}}, (400, 13)),
        ({"columns": ["id", "id"]}, (400, 13)),
        ({"columns": {"column_names": ["id"], "column_aliases": {"a": "id"}}}, (400, 13)),
        ({"columns": {"a": 5}}, (400, 13)),
        ({"columns": [""]}, (400, 13)),
        ({"k": -1}, (400, 13)),
        ({"k": 2**63}, (400, 13)),
        ({"offset": -1}, (400, 13)),
        ({"branch": "../x"}, (400, 13)),
        ({"filter": 5}, (400, 13)),
    ],
)
def test_what_cannot_be_answered_is_the_clients_error(
    pair: Pair, body: object, expected: tuple[int, int]
) -> None:
    assert code(pair[0].ask("query", body)) == expected


@pytest.mark.parametrize(
    "filter",
    [
        "id > " + "+".join(["1"] * 2000),
        "id = 1" + " = true" * 2000,
        "id" + "::bigint" * 2000 + " = 1",
        "id " + "between 1 and 2 " * 2000,
        " or ".join(["id = 1"] * 100_000),
        "abs(" * 40 + "id" + " + 1" * 100 + ")" + " + 1" * 100 + ") + 1" * 39 + " > 1",
    ],
    ids=["sum", "equals", "casts", "between", "or", "nested"],
)
def test_an_endless_expression_is_refused_before_it_exhausts_the_stack(
    pair: Pair, filter: str
) -> None:
    answer = pair[0].ask("query", {"filter": filter})
    assert code(answer) == (400, 13)
    assert "too many operators" in answer.json()["error"]
    assert code(pair[0].ask("count_rows", {"predicate": filter})) == (400, 13)


def test_long_lists_and_many_conditions_are_fine(pair: Pair) -> None:
    table, _ = pair
    many = " OR ".join(f"(id = {i} AND title <> 'a, b')" for i in range(0, 200, 2))
    assert query(table, filter=f"id IN ({', '.join(map(str, range(-9000, 9000)))})").num_rows == 200
    assert query(table, filter=many).num_rows == 100


def test_a_table_without_data_has_no_rows_to_query(server: Server, namespace: str) -> None:
    table = declare(server, f"{namespace}$t")
    assert code(table.ask("query", {"k": 1})) == (400, 19)
    missing = server.post(f"/v1/table/{namespace}$nope/query", {"k": 1})
    assert code(missing) == (404, 4)


def test_a_query_has_a_largest_size(pair: Pair) -> None:
    answer = pair[0].ask("query", {"filter": "x" * 17_000_000})
    assert code(answer) == (413, 13)
