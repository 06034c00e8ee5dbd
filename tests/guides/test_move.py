"""The program of the guide for moving here, on what a lake may hold; the old one is a server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb import index, udf
from lancedb.expr import col

from tests.guides.blocks import list_blocks
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.runners import Team
from tests.harness.processes.servers import Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROWS = 1000


@udf
def double(id: int) -> int:
    return id * 2


@pytest.fixture(scope="module")
def guide() -> dict[str, Any]:
    """What the guide's program defines."""
    defined: dict[str, Any] = {}
    program = list_blocks("docs/guides/move-from-lancedb.md", "python")[0].code
    exec(compile(program, "move.py", "exec"), defined)
    return defined


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A lake of another server."""
    started = servers.start(tmp_path_factory.mktemp("old"), "--no-runner")
    yield lancedb.connect("db://old", api_key="k", host_override=started.url)
    started.stop()


@pytest.fixture
def new(server: Server) -> Any:
    return lancedb.connect("db://new", api_key="k", host_override=server.url)


def some_rows(count: int) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(count * 4), pa.float32()), 4)
    texts = [None if n % 7 == 0 else f"text {n}" for n in range(count)]
    return pa.table({"id": pa.array(range(count), pa.int64()), "text": texts, "vector": vectors})


def test_everything_arrives(guide: dict[str, Any], old: Any, new: Any, team: Team) -> None:
    space = new_name()
    old.create_namespace([space])
    old.create_namespace([space, "sub"])
    at = {"namespace_path": [space, "sub"]}
    table = old.create_table("t", some_rows(ROWS), **at)
    table.delete("id % 10 = 3")
    table.create_index("vector", config=index.IvfFlat(num_partitions=2, distance_type="cosine"))
    words = index.FTS(base_tokenizer="ngram", ngram_min_length=2, ngram_max_length=4, stem=False)
    table.create_index("text", config=words, name="words")
    table.create_index("id")
    table.add_columns(computed={"more": "id + 1"})
    made = old.create_function(double, namespace_path=[space])
    table.add_columns({"twice": made(id=col("id"))})
    old.create_table("empty", schema=some_rows(0).schema, namespace_path=[space])
    guide["ROWS"] = 128
    guide["move"](old, new)
    moved = new.open_table("t", **at)
    assert moved.count_rows() == ROWS - 100
    described = {each.name: each for each in moved.list_indices()}
    assert set(described) == {"vector_idx", "words", "id_idx"}
    assert moved.index_stats("vector_idx").distance_type == "cosine"
    assert described["words"].index_details["base_tokenizer"] == "ngram"
    assert described["words"].index_details["max_ngram_length"] == 4
    # Nobody filled it in the old lake.
    assert moved.search().where("id = 7").to_list()[0]["more"] == 8
    assert b"computed_column" in moved.schema.field("more").metadata
    assert moved.schema.field("twice").metadata is None
    assert new.open_table("empty", namespace_path=[space]).count_rows() == 0


def test_a_copy_that_broke_off_goes_on(guide: dict[str, Any], old: Any, new: Any) -> None:
    name, rows = new_name(), some_rows(300)
    table = old.create_table(name, rows)
    part = new.create_table(name, rows.slice(0, 100))
    guide["ROWS"] = 64
    guide["copy_table"](table, new, [], name)
    assert part.count_rows() == 300
    assert guide["is_same"](old.open_table(name), part)
    # In batches of the same size: 100 rows, then 64, 64, 64 and 8.
    assert part.version == 5
    part.update(where="id = 299", values={"text": "another"})
    assert not guide["is_same"](old.open_table(name), part)


def test_blobs_arrive(guide: dict[str, Any], old: Any, new: Any) -> None:
    name, schema = new_name(), pa.schema([pa.field("id", pa.int64()), lancedb.blob("image")])
    blobs = [b"short", None, b"", bytes(range(256)) * 1000]
    table = old.create_table(
        name, [{"id": n, "image": each} for n, each in enumerate(blobs)], schema=schema
    )
    guide["ROWS"] = 3
    guide["copy_table"](table, new, [], name)
    moved = new.open_table(name)
    ids = moved.search().with_row_id(True).to_arrow()["_rowid"].to_pylist()
    assert moved.fetch_blobs("image", ids).to_pylist() == blobs
    assert guide["is_same"](old.open_table(name), moved)


def test_memory_is_that_of_a_batch(guide: dict[str, Any], old: Any, new: Any) -> None:
    name, guide["ROWS"] = new_name(), 1000
    texts = ["x" * 1000] * 5000
    table = old.create_table(name, pa.table({"id": pa.array(range(5000)), "text": texts}))
    for _ in range(3):
        table.add(pa.table({"id": pa.array(range(5000)), "text": texts}))
    pool = pa.default_memory_pool()
    before, largest = pool.bytes_allocated(), 0
    new.create_table(name, schema=table.schema)
    for rows in guide["read_batches"](table, ["id", "text"]):
        largest = max(largest, pool.bytes_allocated() - before)
        new.open_table(name).add(rows)
    assert new.open_table(name).count_rows() == 20_000
    # All of it is 20 MB, a batch is 1 MB.
    assert largest < 8_000_000


def test_the_old_one_may_be_a_folder(guide: dict[str, Any], new: Any, tmp_path: Path) -> None:
    old, name = lancedb.connect(tmp_path), new_name()
    table = old.create_table(name, some_rows(500))
    table.add_columns({"more": "id + 1"})
    table.create_index("id", config=index.BTree())
    guide["ROWS"] = 200
    guide["copy_table"](old.open_table(name), new, [], name)
    assert guide["is_same"](old.open_table(name), new.open_table(name))
    assert [each.name for each in new.open_table(name).list_indices()] == ["id_idx"]
