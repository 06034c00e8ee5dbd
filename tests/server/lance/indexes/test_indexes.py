"""Indexes: list, statistics, drop, and what is refused when one is created."""

from collections.abc import Iterator
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.generated import Client as Generated
from tests.harness.clients.generated import models
from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, code, get_table, new_name
from tests.harness.fuzzing.races import one_winner, race
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

DATA = pa.table(
    {
        "n": pa.array(range(20), pa.int64()),
        "s": [f"word{i}" for i in range(20)],
        "st": pa.array([{"x.y": i} for i in range(20)]),
        "docs": pa.array([[{"t": "text"}]] * 20),
        "vector": pa.array([[float(i)] * 8 for i in range(20)], pa.list_(pa.float32(), 8)),
    }
)


def make(server: Server) -> tuple[Table, Client]:
    """A table in a namespace of its own, with a branch `dev`."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    client = Client(connect(server), [namespace, "t"])
    lance.write_dataset(DATA, mode="create", **client.target)
    table = get_table(server, f"{namespace}$t")
    assert table.ask("branches/create", {"name": "dev"}).status_code == 200
    return table, client


@pytest.fixture
def made(server: Server) -> tuple[Table, Client]:
    return make(server)


@pytest.fixture(scope="module")
def common(server: Server) -> Iterator[Table]:
    """A table with the index `taken`, for requests that change nothing."""
    table, _ = make(server)
    assert create(table, "n", name="taken").status_code == 200
    yield table
    assert table.listed() == [1, 2]


def create(table: Table, column: str, kind: str = "BTREE", **fields: Any) -> Any:
    body = {"column": column, "index_type": kind} | fields
    return table.ask("create_index", body)


def listed(table: Table, **body: Any) -> list[str]:
    return [index["index_name"] for index in table.ask("index/list", body).json()["indexes"]]


def test_an_index_is_listed_with_all_that_is_known(made: tuple[Table, Client]) -> None:
    table, client = made
    assert create(table, "st.`x.y`", name="by x").status_code == 200
    client.open().delete("n < 5")
    client.open().insert(DATA.slice(0, 2))
    answer = table.ask("index/list", {}).json()
    model = models.ListTableIndicesResponse.from_dict(answer)
    (index,) = model.indexes
    assert (index.index_name, index.columns, index.index_type) == ("by x", ["st.`x.y`"], "BTREE")
    assert (index.num_indexed_rows, index.num_unindexed_rows) == (15, 2)
    assert (index.status, index.num_segments) == ("SUCCEEDED", 1)
    assert index.size_bytes > 0
    assert index.created_at is not None
    assert index.type_url.endswith("BTreeIndexDetails")
    (known,) = client.open().describe_indices()
    assert index.index_uuid == known.segments[0].uuid
    stats = table.ask("index/by%20x/stats", {}).json()
    assert stats == {
        "index_type": "BTREE",
        "num_indexed_rows": 15,
        "num_unindexed_rows": 2,
        "num_indices": 1,
    }


def test_the_published_client_reads_the_answers(made: tuple[Table, Client], server: Server) -> None:
    table, client = made
    generated = Generated(server.url)
    request = models.CreateTableIndexRequest(column="n", index_type="BTREE")
    transaction = generated.create_table_scalar_index(table.id, request).transaction_id
    committed = client.open().read_transaction(2)
    assert committed is not None
    assert transaction == committed.uuid
    known = server.post(f"/v1/transaction/{transaction}/describe").json()
    assert known["status"] == "SUCCEEDED"
    request = models.CreateTableIndexRequest(column="vector", index_type="IVF_FLAT")
    assert generated.create_table_index(table.id, request).transaction_id
    request = models.DescribeTableIndexStatsRequest()
    stats = generated.describe_table_index_stats(table.id, "vector_idx", request)
    assert (stats.distance_type, stats.num_indexed_rows) == ("l2", 20)
    assert generated.drop_table_index(table.id, "n_idx").transaction_id
    assert listed(table) == ["vector_idx"]
    assert table.listed() == [1, 2, 3, 4]


def test_indexes_are_listed_in_pages_and_of_a_version(made: tuple[Table, Client]) -> None:
    table, _ = made
    for name in ("b", "c", "a"):
        assert create(table, "n", name=name).status_code == 200
    first = table.ask("index/list", {"limit": 2}).json()
    assert [index["index_name"] for index in first["indexes"]] == ["a", "b"]
    assert listed(table, limit=2, page_token=first["page_token"]) == ["c"]
    assert listed(table, version=2) == ["b"]
    assert listed(table, version=1) == []
    assert table.ask("index/b/stats", {"version": 2}).status_code == 200
    assert code(table.ask("index/b/stats", {"version": 1})) == (404, 6)


def test_a_branch_changes_alone(made: tuple[Table, Client]) -> None:
    table, client = made
    assert create(table, "n", name="i", branch="dev").status_code == 200
    vector = {"column": "vector", "index_type": "IVF_FLAT", "name": "v", "branch": "dev"}
    assert table.ask("create_index", vector).status_code == 200
    scalar = {"column": "s", "index_type": "BITMAP", "name": "s", "branch": "dev"}
    assert table.ask("create_scalar_index", scalar).status_code == 200
    assert (listed(table), listed(table, branch="dev")) == ([], ["i", "s", "v"])
    assert code(table.ask("index/i/stats", {})) == (404, 6)
    assert table.ask("index/i/stats", {"branch": "dev"}).json()["num_indexed_rows"] == 20
    assert create(table, "n", name="i").status_code == 200
    assert table.ask("index/i/drop", branch="dev").status_code == 200
    assert (listed(table), listed(table, branch="dev")) == (["i"], ["s", "v"])
    assert (table.listed(), table.listed(branch="dev")) == ([1, 2], [1, 2, 3, 4, 5])
    assert client.open().describe_indices()[0].name == "i"


def test_a_dropped_index_is_gone(made: tuple[Table, Client]) -> None:
    table, client = made
    create(table, "n")
    assert table.ask("index/n_idx/drop").status_code == 200
    assert client.open().describe_indices() == []
    assert code(table.ask("index/n_idx/drop")) == (404, 6)
    assert create(table, "n").status_code == 200


def test_text_in_lists_is_reached_with_and_without_items(made: tuple[Table, Client]) -> None:
    table, _ = made
    assert create(table, "docs.t", "FTS", name="a").status_code == 200
    assert create(table, "docs.item.t", "FTS", name="b").status_code == 200
    found = table.ask("index/list", {}).json()["indexes"]
    assert [index["columns"] for index in found] == [["docs.item.t"], ["docs.item.t"]]


def test_of_many_creators_one_wins(made: tuple[Table, Client]) -> None:
    table, client = made
    found = race(lambda _: create(table, "n", name="i"))
    assert found == one_winner((409, 7))
    assert len(client.open().describe_indices()[0].segments) == 1


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"column": "missing"}, (404, 12)),
        ({"column": "st.missing"}, (404, 12)),
        ({"column": "missing", "index_type": "FTS"}, (404, 12)),
        ({"column": "missing", "index_type": "IVF_FLAT"}, (404, 12)),
        ({"column": "`n"}, (400, 13)),
        ({"column": ""}, (400, 13)),
        ({"name": "taken"}, (409, 7)),
        ({"name": "taken", "column": "s"}, (409, 7)),
        ({"name": ""}, (400, 13)),
        ({"name": "a/b"}, (400, 13)),
        ({"name": "a\nb"}, (400, 13)),
        ({"name": "x" * 256}, (400, 13)),
        ({"name": "__lance_frag_reuse"}, (400, 13)),
        ({"index_type": "QUADTREE"}, (400, 13)),
        ({"index_type": None}, (400, 13)),
        ({"index_type": "FTS"}, (400, 13)),
        ({"index_type": "IVF_FLAT"}, (400, 13)),
        ({"index_type": "RTREE"}, (400, 13)),
        ({"column": "vector"}, (400, 13)),
        ({"column": "s", "index_type": "LABEL_LIST"}, (400, 13)),
        ({"num_partitions": 2}, (400, 13)),
        ({"stem": True}, (400, 13)),
        ({"branch": "missing"}, (404, 22)),
        ({"branch": "no such"}, (400, 13)),
    ],
)
def test_bad_indexes_are_refused(
    common: Table, fields: dict[str, Any], expected: tuple[int, int]
) -> None:
    body = {"column": "n", "index_type": "BTREE"} | fields
    assert code(common.ask("create_index", body)) == expected


@pytest.mark.parametrize(
    "fields",
    [
        {"num_partitions": 0},
        {"num_partitions": 2**40},
        {"num_partitions": 2, "target_partition_size": 5},
        {"num_sub_vectors": 2},
        {"m": 10},
        {"with_position": True},
        {"distance_type": "manhattan"},
        {"distance_type": "hamming"},
        {"index_type": "IVF_PQ", "num_sub_vectors": 3},
        {"index_type": "IVF_PQ", "num_bits": 7},
        {"index_type": "IVF_SQ", "num_bits": 4},
        {"index_type": "IVF_RQ", "num_bits": 64},
        {"index_type": "IVF_HNSW_FLAT", "m": 1},
        {"index_type": "IVF_HNSW_FLAT", "m": 20, "ef_construction": 5},
        {"column": "s", "index_type": "FTS", "language": "Klingon"},
        {"column": "s", "index_type": "FTS", "base_tokenizer": "knife"},
        {"column": "s", "index_type": "FTS", "base_tokenizer": "lindera/../../etc"},
        {"column": "s", "index_type": "FTS", "base_tokenizer": "jieba/missing"},
        {"column": "s", "index_type": "FTS", "max_token_length": -1},
        {"column": "s", "index_type": "FTS", "distance_type": "l2"},
    ],
)
def test_bad_parameters_are_refused(common: Table, fields: dict[str, Any]) -> None:
    body = {"column": "vector", "index_type": "IVF_FLAT", "name": "new"} | fields
    assert code(common.ask("create_index", body)) == (400, 13)


def test_a_scalar_index_is_no_vector_index(common: Table) -> None:
    body = {"column": "vector", "index_type": "IVF_FLAT"}
    assert code(common.ask("create_scalar_index", body)) == (400, 13)


@pytest.mark.parametrize(
    ("operation", "body", "expected"),
    [
        ("list", {"version": 99}, (404, 11)),
        ("list", {"branch": "missing"}, (404, 22)),
        ("list", {"limit": 0}, (400, 13)),
        ("list", {"page_token": "no"}, (400, 13)),
        ("missing/stats", {}, (404, 6)),
        ("taken/stats", {"version": 99}, (404, 11)),
        ("taken/stats", {"branch": "missing"}, (404, 22)),
        ("taken/stats", {"index_name": "other"}, (400, 13)),
        ("missing/drop", None, (404, 6)),
    ],
)
def test_errors_have_their_code(
    common: Table, operation: str, body: Any, expected: tuple[int, int]
) -> None:
    assert code(common.ask(f"index/{operation}", body)) == expected


@pytest.mark.parametrize(
    "operation",
    ["create_index", "create_scalar_index", "index/list", "index/i/stats", "index/i/drop"],
)
def test_a_missing_table_is_named(server: Server, common: Table, operation: str) -> None:
    body = {"column": "n", "index_type": "BTREE"}
    namespace = common.parts[0]
    assert code(server.post(f"/v1/table/{namespace}$gone/{operation}", body)) == (404, 4)
    assert code(server.post(f"/v1/table/nowhere$gone/{operation}", body)) == (404, 1)
