"""QueryTable by vector: every parameter, and each result compared with pylance's own."""

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.harness.data.rows import documents, ids, put, query, vectors
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server

Pair = tuple[Table, lance.LanceDataset]
NEAR = [0.5] * 8


@pytest.fixture(scope="module")
def pair(server: Server) -> Pair:
    return put(server, documents())


@pytest.fixture(scope="module")
def indexed(server: Server) -> Pair:
    """Vectors in a coarse index, so that its parameters matter; the last ten are not in it."""
    table, dataset = put(server, documents(2000))
    dataset = dataset.create_index("vector", "IVF_PQ", num_partitions=16, num_sub_vectors=2)
    dataset.insert(documents(10, seed=8).set_column(0, "id", [list(range(2000, 2010))]))
    return table, dataset


def nearest(dataset: lance.LanceDataset, k: int = 10, q: Any = NEAR, **options: Any) -> pa.Table:
    wanted = {"column": "vector", "q": q, "k": k} | options
    return dataset.to_table(nearest=wanted)


@pytest.mark.parametrize("vector", [{"single_vector": NEAR}, NEAR])
def test_the_nearest_rows_come_first(pair: Pair, vector: object) -> None:
    table, dataset = pair
    found = query(table, vector=vector, k=10)
    assert found == nearest(dataset)
    assert found["_distance"].to_pylist() == sorted(found["_distance"].to_pylist())


def test_k_rows_come_after_the_offset(pair: Pair) -> None:
    table, dataset = pair
    found = query(table, vector=NEAR, k=5, offset=3)
    assert ids(found) == ids(nearest(dataset, 8))[3:]
    assert query(table, vector=NEAR, k=0).num_rows == 0
    assert query(table, vector=NEAR, k=2**63 - 1, offset=190).num_rows == 10


@pytest.mark.parametrize("metric", ["l2", "Cosine", "DOT"])
def test_each_distance_is_known_in_any_case(pair: Pair, metric: str) -> None:
    table, dataset = pair
    found = query(table, vector=NEAR, k=10, distance_type=metric)
    assert found == nearest(dataset, metric=metric.lower())
    assert (found == nearest(dataset)) is (metric == "l2")


@pytest.mark.parametrize("metric", ["hamming", "Hamming", None])
def test_bytes_are_compared_by_their_bits(server: Server, metric: str | None) -> None:
    numbers = np.arange(80, dtype=np.uint8).reshape(20, 4)
    table, _ = put(server, pa.table({"id": range(20), "bits": vectors(numbers)}))
    found = query(table, vector=[4, 5, 6, 7], k=2, distance_type=metric)
    assert ids(found)[0] == 1
    assert found["_distance"].to_pylist() == [0.0, 4.0]
    assert code(table.ask("query", {"vector": [4, 5, 6, 300], "k": 2})) == (400, 13)
    assert code(table.ask("query", {"vector": [4, 5, 6, 0.5], "k": 2})) == (400, 13)


def test_a_filter_works_before_or_after_the_search(pair: Pair) -> None:
    table, dataset = pair
    after = query(table, vector=NEAR, k=10, filter="id < 100")
    assert ids(after) == [id for id in ids(nearest(dataset)) if id < 100]
    assert after == query(table, vector=NEAR, k=10, filter="id < 100", prefilter=False)
    before = query(table, vector=NEAR, k=10, filter="id < 100", prefilter=True)
    assert ids(before) == [id for id in ids(nearest(dataset, 200)) if id < 100][:10]


def test_bounds_limit_the_distance(pair: Pair) -> None:
    table, dataset = pair
    distances = nearest(dataset, 200)["_distance"].to_pylist()
    low, high = distances[5], distances[9]
    assert query(table, vector=NEAR, k=200, lower_bound=low).num_rows == 195
    assert query(table, vector=NEAR, k=200, upper_bound=high).num_rows == 9
    found = query(table, vector=NEAR, k=200, lower_bound=low, upper_bound=high)
    assert found["_distance"].to_pylist() == distances[5:9]


def test_columns_and_row_ids_are_chosen(pair: Pair) -> None:
    table, dataset = pair
    found = query(table, vector=NEAR, k=3, columns=["title"], with_row_id=True)
    assert found.schema.names == ["title", "_distance", "_rowid"]
    made = {"far": "_distance * 2", "id": "id"}
    found = query(table, vector=NEAR, k=3, columns=made)
    assert ids(found) == ids(nearest(dataset, 3))
    twice = [2 * d for d in found["_distance"].to_pylist()]
    assert found["far"].to_pylist() == pytest.approx(twice)


@pytest.mark.parametrize("wrapped", [True, False])
def test_several_vectors_are_several_searches(pair: Pair, wrapped: bool) -> None:
    table, dataset = pair
    several = [NEAR, [0.1] * 8, [0.9] * 8]
    vector = {"multi_vector": several} if wrapped else several
    found = query(table, vector=vector, k=4, offset=2)
    assert found["query_index"].to_pylist() == [0] * 4 + [1] * 4 + [2] * 4
    alone = [ids(nearest(dataset, 6, q))[2:] for q in several]
    assert ids(found) == [id for part in alone for id in part]
    assert query(table, vector=vector, k=4).num_rows == 12
    assert query(table, vector=vector, k=0).num_rows == 0


def test_several_vectors_are_one_search_of_a_column_of_lists(server: Server) -> None:
    numbers = np.random.default_rng(3).random((30, 2, 4)).tolist()
    kind = pa.list_(pa.list_(pa.float32(), 4))
    rows = pa.table({"id": range(30), "vector": pa.array(numbers, kind)})
    table, dataset = put(server, rows)
    several = [[0.1, 0.9, 0.2, 0.8], [0.5, 0.5, 0.5, 0.1]]
    found = query(table, vector={"multi_vector": several}, k=5, distance_type="cosine")
    assert found == nearest(dataset, 5, several, metric="cosine")
    assert "query_index" not in found.schema.names


def test_the_column_is_named_when_there_are_several(server: Server) -> None:
    rows = documents(20)
    nested = pa.StructArray.from_arrays([rows["vector"].combine_chunks()], ["deep"])
    other = vectors(np.ones((20, 3), np.float32))
    table, _ = put(server, rows.append_column("other", other).append_column("in", nested))
    answer = table.ask("query", {"vector": NEAR, "k": 1})
    assert code(answer) == (400, 13)
    assert "vector, other, in.deep" in answer.json()["error"]
    found = query(table, vector=NEAR, k=4, vector_column="vector")
    assert ids(found) == ids(query(table, vector=NEAR, k=4, vector_column="in.`deep`"))
    assert query(table, vector=[1.0] * 3, k=4, vector_column="other").num_rows == 4


def test_nprobes_bounds_what_is_searched(indexed: Pair) -> None:
    table, dataset = indexed
    few, many = (query(table, vector=NEAR, k=50, nprobes=n) for n in (1, 16))
    assert few == nearest(dataset, 50, nprobes=1)
    assert many == nearest(dataset, 50, nprobes=16)
    assert few != many
    given = {"vector": NEAR, "k": 50, "maximum_nprobes": 1, "minimum_nprobes": 1}
    assert query(table, **given, nprobes=16) == few
    assert query(table, vector=NEAR, k=50, minimum_nprobes=16) == many
    assert code(table.ask("query", given | {"minimum_nprobes": 2})) == (400, 13)
    assert query(table, vector=NEAR, k=5, nprobes=0, refine_factor=0, ef=0).num_rows == 5


def test_refining_gives_exact_distances(indexed: Pair) -> None:
    table, dataset = indexed
    found = query(table, vector=NEAR, k=10, refine_factor=20, nprobes=16)
    assert found == nearest(dataset, 10, refine_factor=20, nprobes=16)
    assert found != nearest(dataset, 10, nprobes=16)


def test_the_index_can_be_bypassed(indexed: Pair) -> None:
    table, dataset = indexed
    found = query(table, vector=NEAR, k=20, bypass_vector_index=True)
    assert found == nearest(dataset, 20, use_index=False)
    assert found != query(table, vector=NEAR, k=20)


def test_a_fast_search_leaves_out_what_is_not_indexed(indexed: Pair) -> None:
    table, _ = indexed
    late = "id >= 2000"
    wanted = {"vector": NEAR, "k": 20, "filter": late, "prefilter": True}
    assert query(table, **wanted).num_rows == 10
    assert query(table, **wanted, fast_search=True).num_rows == 0


def test_ef_is_the_effort_in_a_graph(server: Server) -> None:
    table, dataset = put(server, documents(3000, dimension=32))
    options: dict[str, Any] = {"num_partitions": 1, "m": 4, "ef_construction": 8}
    dataset = dataset.create_index("vector", "IVF_HNSW_SQ", **options)
    near = [0.5] * 32
    little, much = (query(table, vector=near, k=10, ef=ef) for ef in (10, 1000))
    assert little == nearest(dataset, 10, near, ef=10)
    assert much == nearest(dataset, 10, near, ef=1000)
    assert sum(much["_distance"].to_pylist()) < sum(little["_distance"].to_pylist())


@pytest.mark.parametrize(
    ("body", "expected", "says"),
    [
        ({"vector": [0.5] * 5}, (400, 13), "5 dimensions, column vector has 8"),
        ({"vector": [[0.5] * 8, [0.5] * 9]}, (400, 13), "9 dimensions, column vector has 8"),
        ({"vector_column": "nope"}, (404, 12), "nope"),
        ({"vector_column": "id"}, (400, 13), "not a vector"),
        ({"distance_type": "manhattan"}, (400, 13), "manhattan"),
        ({"distance_type": "hamming"}, (400, 13), "hamming"),
        ({"k": None}, (400, 13), "k is missing"),
        ({"vector": [0.5, [0.5]]}, (400, 13), "mixes"),
        ({"vector": {"single_vector": [1], "multi_vector": [[1]]}}, (400, 13), "single_vector"),
        ({"vector": "near"}, (400, 13), "vector"),
        ({"vector": [None]}, (400, 13), "vector"),
        ({"filter": "id >"}, (400, 13), ""),
        ({"minimum_nprobes": 0}, (400, 13), "minimum_nprobes"),
        ({"nprobes": -1}, (400, 13), "nprobes"),
    ],
)
def test_a_search_that_cannot_be_is_the_clients_error(
    pair: Pair, body: dict[str, Any], expected: tuple[int, int], says: str
) -> None:
    answer = pair[0].ask("query", {"vector": NEAR, "k": 3} | body)
    assert code(answer) == expected
    assert says in answer.json()["error"]


@pytest.mark.parametrize("vector", [None, {}, [], {"single_vector": []}])
def test_an_empty_vector_is_no_search(pair: Pair, vector: object) -> None:
    table, _ = pair
    assert ids(query(table, vector=vector, k=2, bypass_vector_index=True)) == [0, 1]
    assert code(pair[0].ask("query", {"vector": vector, "filter": "id >"})) == (400, 13)


def test_a_table_without_vectors_says_so(server: Server) -> None:
    table, _ = put(server, pa.table({"id": [1]}))
    answer = table.ask("query", {"vector": [1.0], "k": 1})
    assert code(answer) == (400, 13)
    assert "0 vector columns" in answer.json()["error"]
