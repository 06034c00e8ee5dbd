"""Every type of index that Lance builds, and each parameter in the statistics of what was built."""

from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from tests.harness.clients.pylance import Client, connect
from tests.harness.data.tables import Table, get_table, new_name
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

ROWS, DIMENSION = 300, 16
POINT = pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64())])
GEO = {"ARROW:extension:name": "geoarrow.point", "ARROW:extension:metadata": "{}"}


@pytest.fixture(scope="module")
def table(server: Server) -> Table:
    """A table with a column for each type of index; every test adds an index of its own."""
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    client = Client(connect(server), [namespace, "t"])
    vectors = np.random.default_rng(7).random((ROWS, DIMENSION), dtype="f4")
    data = pa.table(
        [
            pa.array(range(ROWS), pa.int64()),
            pa.array([f"Running Cafés {i}" for i in range(ROWS)]),
            pa.array([["a", "b"]] * ROWS),
            pa.array([{"x": float(i), "y": 1.0} for i in range(ROWS)], POINT),
            pa.array(list(vectors), pa.list_(pa.float32(), DIMENSION)),
        ],
        schema=pa.schema(
            [
                pa.field("n", pa.int64()),
                pa.field("s", pa.string()),
                pa.field("labels", pa.list_(pa.string())),
                pa.field("point", POINT, metadata=GEO),
                pa.field("vector", pa.list_(pa.float32(), DIMENSION)),
            ]
        ),
    )
    lance.write_dataset(data, mode="create", **client.target)
    return get_table(server, f"{namespace}$t")


def build(table: Table, column: str, kind: str, **fields: Any) -> str:
    name = new_name("i")
    body = {"column": column, "index_type": kind, "name": name} | fields
    answer = table.ask("create_index", body)
    assert answer.status_code == 200, answer.text
    return name


def part(table: Table, name: str) -> dict[str, Any]:
    """Lance's own statistics of an index's one segment."""
    found: dict[str, Any] = lance.dataset(str(table.location)).stats.index_stats(name)
    segment: dict[str, Any] = found["indices"][0]
    return segment


def details(table: Table, name: str) -> dict[str, Any]:
    """Lance's own description of an index."""
    found = lance.dataset(str(table.location)).describe_indices()
    return next(index.details for index in found if index.name == name)


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("BTREE", "n"),
        ("btree", "n"),
        ("BITMAP", "n"),
        ("LABEL_LIST", "labels"),
        ("Label_List", "labels"),
        ("NGRAM", "s"),
        ("ZONEMAP", "n"),
        ("BLOOMFILTER", "n"),
        ("RTREE", "point"),
        ("MINHASHLSH", "s"),
        ("FTS", "s"),
        ("inverted", "s"),
    ],
)
def test_scalar_types_are_built(table: Table, kind: str, column: str) -> None:
    name = new_name("i")
    body = {"column": column, "index_type": kind, "name": name}
    assert table.ask("create_scalar_index", body).status_code == 200
    stats = table.ask(f"index/{name}/stats", {}).json()
    assert stats["index_type"] == {"INVERTED": "FTS"}.get(kind.upper(), kind.upper())
    assert (stats["num_indexed_rows"], stats["num_unindexed_rows"]) == (ROWS, 0)


@pytest.mark.parametrize(
    "kind",
    [
        "IVF_FLAT",
        "ivf_pq",
        "IVF_SQ",
        "IVF_RQ",
        "IVF_HNSW_FLAT",
        "Ivf_Hnsw_Pq",
        "IVF_HNSW_SQ",
    ],
)
def test_vector_types_are_built(table: Table, kind: str) -> None:
    fields = {"num_partitions": 3, "sample_rate": 40, "max_iterations": 7}
    name = build(table, "vector", kind, distance_type="cosine", **fields)
    stats = table.ask(f"index/{name}/stats", {}).json()
    assert (stats["index_type"], stats["distance_type"]) == (kind.upper(), "cosine")
    assert stats["num_indexed_rows"] == ROWS
    assert part(table, name)["num_partitions"] == 3
    hints = details(table, name)["runtime_hints"]
    assert hints["lance.ivf.sample_rate"] == "40"
    assert hints["lance.ivf.max_iters"] == "7"


@pytest.mark.parametrize("distance", ["l2", "COSINE", "dot"])
def test_the_distance_is_honoured(table: Table, distance: str) -> None:
    name = build(table, "vector", "IVF_FLAT", distance_type=distance)
    assert part(table, name)["metric_type"] == distance.lower()
    name = build(table, "vector", "IVF_FLAT", metric_type=distance)
    assert part(table, name)["metric_type"] == distance.lower()


def test_the_partition_size_is_honoured(table: Table) -> None:
    name = build(table, "vector", "IVF_FLAT", target_partition_size=50)
    assert part(table, name)["num_partitions"] == 6


def test_product_quantization_is_honoured(table: Table) -> None:
    name = build(table, "vector", "IVF_PQ", num_sub_vectors=4, num_bits=4)
    quantizer = part(table, name)["sub_index"]
    assert (quantizer["num_sub_vectors"], quantizer["nbits"]) == (4, 4)
    name = build(table, "vector", "IVF_PQ")
    assert part(table, name)["sub_index"]["num_sub_vectors"] == 1


def test_the_bits_of_other_quantizers_are_honoured(table: Table) -> None:
    name = build(table, "vector", "IVF_RQ", num_bits=3)
    assert part(table, name)["sub_index"]["num_bits"] == 3
    name = build(table, "vector", "IVF_SQ", num_bits=8)
    assert part(table, name)["sub_index"]["num_bits"] == 8


@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ"])
def test_the_graph_is_honoured(table: Table, kind: str) -> None:
    fields = {"num_sub_vectors": 2} if kind.endswith("PQ") else {}
    name = build(table, "vector", kind, m=7, ef_construction=77, **fields)
    graph = part(table, name)["sub_index"]["params"]
    assert (graph["m"], graph["ef_construction"]) == (7, 77)
    if fields:
        assert part(table, name)["sub_index"]["num_sub_vectors"] == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("with_position", True),
        ("base_tokenizer", "whitespace"),
        ("language", "German"),
        ("max_token_length", 3),
        ("lower_case", False),
        ("stem", False),
        ("remove_stop_words", False),
        ("ascii_folding", False),
    ],
)
def test_an_option_of_text_is_honoured(table: Table, option: str, value: object) -> None:
    usual = details(table, build(table, "s", "FTS"))
    changed = details(table, build(table, "s", "FTS", **{option: value}))
    assert changed == usual | {option: value}
    assert usual[option] != value
