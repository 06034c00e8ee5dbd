"""lancedb's remote tables: every index that the client can describe."""

import inspect
from datetime import timedelta
from typing import Any

import lancedb.index as client_indexes
import pytest
from lancedb.index import (
    FTS,
    Bitmap,
    BTree,
    Fm,
    HnswFlat,
    HnswSq,
    IvfFlat,
    IvfPq,
    IvfRq,
    IvfSq,
    LabelList,
)

from tests.harness.clients.lancedb_modes import Lake, covers, some_rows
from tests.harness.data.tables import new_name

SCALARS = {
    "BTree": ("id", BTree()),
    "Bitmap": ("id", Bitmap()),
    "LabelList": ("tags", LabelList()),
    "Fm": ("text", Fm()),
    "FTS": ("text", FTS(custom_stop_words=["hello"])),
}
VECTORS = {
    "IvfFlat": IvfFlat(num_partitions=2),
    "IvfPq": IvfPq(num_partitions=2, num_sub_vectors=2),
    "IvfSq": IvfSq(num_partitions=2),
    "IvfRq": IvfRq(num_partitions=2),
    "IvfHnswSq": HnswSq(num_partitions=1, m=8, ef_construction=40),
    "IvfHnswFlat": HnswFlat(num_partitions=1, m=8, ef_construction=40),
}


@pytest.fixture(scope="module")
def many(lake: Lake) -> Any:
    """A table with enough rows to train on."""
    rows = some_rows(*range(300), dimensions=8)
    return lake.done(lake.database.create_table(new_name(), rows))


def test_every_kind_of_index_is_tried() -> None:
    kinds = {
        name
        for name, kind in vars(client_indexes).items()
        if inspect.isclass(kind) and hasattr(kind, "__dataclass_fields__")
    }
    # The client itself refuses this one for remote tables.
    refused = {"HnswPq", "IvfHnswPq"}
    other_names = {"HnswSq", "HnswFlat"}
    assert kinds == {*SCALARS, *VECTORS, *refused, *other_names}


@covers("table", "create_index", "list_indices", "index_stats", "wait_for_index", "drop_index")
@pytest.mark.parametrize("kind", SCALARS)
def test_columns_are_indexed(lake: Lake, table: Any, kind: str) -> None:
    column, config = SCALARS[kind]
    lake.done(table.create_index(column, config=config, name="i"))
    lake.done(table.wait_for_index(["i"], timedelta(seconds=60)))
    (index,) = lake.done(table.list_indices())
    assert (index.name, index.index_type, index.columns) == ("i", kind, [column])
    stats = lake.done(table.index_stats("i"))
    assert (stats.num_indexed_rows, stats.num_unindexed_rows) == (3, 0)
    lake.done(table.create_index(column, config=config, name="i"))
    assert len(lake.done(table.list_indices())) == 1
    lake.done(table.drop_index("i"))
    assert lake.done(table.index_stats("i")) is None


@pytest.mark.parametrize("kind", VECTORS)
def test_vectors_are_indexed(lake: Lake, many: Any, kind: str) -> None:
    lake.done(many.create_index("vector", config=VECTORS[kind]))
    (index,) = lake.done(many.list_indices())
    assert (index.index_type, index.num_indexed_rows) == (kind, 300)
    near = lake.done(many.search([7.0] + [0.0] * 7)).limit(5).refine_factor(50)
    assert 7 in [row["id"] for row in lake.done(near.to_list())]
    lake.done(many.drop_index(index.name))


@covers("table", "create_index_async", "tokenize", "prewarm_index", "prewarm_data")
def test_an_index_is_there_when_its_job_is_done(lake: Lake, table: Any) -> None:
    job = lake.done(table.create_index_async("text", config=FTS()))
    lake.done(job.wait())
    tokens = lake.done(table.tokenize("Hello numbers", column="text"))
    assert [token.text for token in tokens] == ["hello", "number"]
    lake.done(table.prewarm_index("text_idx"))
    lake.done(table.prewarm_data(["id"]))


def test_stop_words_and_ngrams_count(lake: Lake, table: Any) -> None:
    lake.done(table.create_index("text", config=FTS(custom_stop_words=["hello"])))
    assert lake.done(lake.done(table.search("hello", query_type="fts")).to_list()) == []
    grams = FTS(base_tokenizer="ngram", ngram_min_length=2, ngram_max_length=3, stem=False)
    lake.done(table.create_index("text", config=grams))
    found = lake.done(lake.done(table.search("orl", query_type="fts")).to_list())
    assert [row["id"] for row in found] == [2]


def test_the_client_chooses_an_index_by_itself(lake: Lake, many: Any) -> None:
    for column in ("vector", "id"):
        lake.done(many.create_index(column))
    assert [i.index_type for i in lake.done(many.list_indices())] == ["BTree", "IvfPq"]
    for name in ("vector_idx", "id_idx"):
        lake.done(many.drop_index(name))
