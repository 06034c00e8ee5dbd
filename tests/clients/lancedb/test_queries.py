"""lancedb's remote tables: searches by vector, by text and by both."""

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from lancedb import query as client_queries
from lancedb.expr import col, lit
from lancedb.index import FTS
from lancedb.pydantic import LanceModel
from lancedb.rerankers import LinearCombinationReranker, MRRReranker, RRFReranker
from lancedb.rerankers.base import Reranker

from tests.harness.clients.lancedb_modes import SYNC, Lake, covers

# Its dataclasses do not say what has a default.
lq: Any = client_queries
NEAR_ONE = [1.0, 0.0, 0.0, 0.0]


class Person(LanceModel):
    id: int
    text: str


class FarthestFirst(Reranker):
    """A reranker of our own, as applications write them."""

    def rerank_hybrid(self, query: str, vector_results: Any, fts_results: Any) -> Any:
        return vector_results

    def rerank_fts(self, query: str, fts_results: Any) -> Any:
        return fts_results.append_column("_relevance_score", fts_results["_score"])

    def rerank_vector(self, query: str, vector_results: Any) -> Any:
        scores = pa.array(vector_results["_distance"].to_pylist(), pa.float32())
        found = vector_results.append_column("_relevance_score", scores)
        return found.sort_by([("_relevance_score", "descending")])


def search(lake: Lake, table: Any, *arguments: Any, **named: Any) -> Any:
    return lake.done(table.search(*arguments, **named))


def found(lake: Lake, query: Any) -> list[int]:
    return [row["id"] for row in lake.done(query.to_list())]


@pytest.fixture
def texts(lake: Lake, table: Any) -> Any:
    """The table with a full-text index that knows positions."""
    config = FTS(with_position=True, remove_stop_words=False)
    lake.done(table.create_index("text", config=config))
    return table


@covers("table", "search")
@covers("vector", "limit", "offset", "where", "select", "to_list", "to_arrow")
def test_the_nearest_rows_are_found(lake: Lake, table: Any) -> None:
    assert found(lake, search(lake, table, NEAR_ONE).limit(2)) == [1, 2]
    assert found(lake, search(lake, table, NEAR_ONE).limit(2).offset(1)) == [2, 3]
    assert found(lake, search(lake, table, NEAR_ONE).where("id > 1").limit(1)) == [2]
    chosen = search(lake, table, NEAR_ONE).select({"twice": "id * 2"}).limit(1)
    assert lake.done(chosen.to_arrow())["twice"].to_pylist() == [2]


@covers("vector", "distance_type", "distance_range", "bypass_vector_index", "refine_factor", "ef")
@covers("vector", "nprobes", "minimum_nprobes", "maximum_nprobes", "with_row_id")
def test_a_search_can_be_tuned(lake: Lake, table: Any) -> None:
    near = search(lake, table, NEAR_ONE).distance_type("l2").distance_range(0.5, 2.0)
    assert found(lake, near.limit(3)) == [2]
    tuned = search(lake, table, NEAR_ONE).nprobes(3).refine_factor(2).ef(10).bypass_vector_index()
    assert found(lake, tuned.limit(1)) == [1]
    probed = search(lake, table, NEAR_ONE).minimum_nprobes(2).maximum_nprobes(0).limit(1)
    row = lake.done(lake.with_row_id(probed).to_list())[0]
    assert row["_rowid"] == 0


@covers("vector", "fast_search")
def test_a_fast_search_leaves_out_what_no_index_has(lake: Lake, table: Any) -> None:
    assert found(lake, search(lake, table, NEAR_ONE).fast_search().limit(3)) == []


@covers("vector", "to_pandas", "to_polars", "to_batches", "to_pydantic")
def test_rows_come_in_every_form(lake: Lake, table: Any) -> None:
    query = search(lake, table, NEAR_ONE).select(["id", "text"]).limit(1)
    assert lake.done(query.to_pandas())["id"].tolist() == [1]
    assert lake.done(query.to_polars())["id"].to_list() == [1]
    assert lake.done(query.to_batches()) is not None
    assert lake.done(query.to_pydantic(Person))[0].text == "hello number 1"


@covers("vector", "explain_plan", "analyze_plan", "output_schema", "to_query_object", "order_by")
def test_a_search_is_explained(lake: Lake, table: Any) -> None:
    query = search(lake, table, NEAR_ONE).limit(2)
    assert "KNN" in lake.done(query.explain_plan(True))
    assert "elapsed" in lake.done(query.analyze_plan())
    assert "_distance" in lake.done(query.output_schema()).names
    assert query.to_query_object().limit == 2
    last = [lq.ColumnOrdering(column_name="id", ascending=False)]
    assert found(lake, query.order_by(last)) == [2, 1]


def test_several_vectors_are_several_searches(lake: Lake, table: Any) -> None:
    rows = lake.done(search(lake, table, [NEAR_ONE, [3.0, 0.0, 0.0, 0.0]]).limit(1).to_list())
    assert [(row["query_index"], row["id"]) for row in rows] == [(0, 1), (1, 3)]


@covers("plain", "where", "select", "limit", "offset", "to_list", "order_by", "with_row_id")
def test_rows_are_read_filtered_and_sorted(lake: Lake, table: Any) -> None:
    wanted = lake.query(table).where(col("id") > lit(1)).select({"next": col("id") + lit(1)})
    assert lake.done(wanted.to_list()) == [{"next": 3}, {"next": 4}]
    last = [lq.ColumnOrdering(column_name="id", ascending=False, nulls_first=False)]
    assert found(lake, lake.query(table).order_by(last).limit(2)) == [3, 2]
    names = lake.query(table).select(["text"]).order_by(last).offset(1).limit(1)
    assert lake.done(names.to_list()) == [{"text": "world number 2"}]
    rows = lake.done(lake.with_row_id(lake.query(table)).to_list())  # with_row_id
    assert [row["_rowid"] for row in rows] == [0, 1, 2]


@covers("plain", "to_arrow", "to_pandas", "to_polars", "to_batches", "to_pydantic")
@covers("plain", "explain_plan", "analyze_plan", "output_schema", "to_query_object")
def test_a_scan_comes_in_every_form(lake: Lake, table: Any) -> None:
    query = lake.query(table).select(["id", "text"]).limit(1)
    assert lake.done(query.to_arrow()).num_rows == len(lake.done(query.to_pandas())) == 1
    assert lake.done(query.to_polars()) is not None
    assert lake.done(query.to_batches()) is not None
    assert lake.done(query.to_pydantic(Person))[0].id == 1
    assert lake.done(query.explain_plan())
    assert lake.done(query.analyze_plan())
    assert lake.done(query.output_schema()).names == ["id", "text"]
    assert query.to_query_object().limit == 1


def test_a_query_may_have_a_time_limit(lake: Lake, table: Any) -> None:
    rows = lake.done(lake.query(table).to_list(timeout=timedelta(seconds=60)))
    assert len(rows) == 3


@covers("text", "limit", "offset", "where", "select", "to_list", "to_arrow", "with_row_id")
def test_words_are_found(lake: Lake, texts: Any) -> None:
    query = search(lake, texts, "hello", query_type="fts")
    assert sorted(found(lake, query.limit(5))) == [1, 3]
    one = search(lake, texts, "hello", query_type="fts", fts_columns="text").where("id > 1")
    assert found(lake, one.select(["id"]).offset(0).limit(1)) == [3]
    rows = lake.done(lake.with_row_id(search(lake, texts, "world", query_type="fts")).to_arrow())
    assert rows["_rowid"].to_pylist() == [1]  # with_row_id


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        (lq.PhraseQuery("hello number", "text"), [1, 3]),
        (lq.MatchQuery("wrld", "text", fuzziness=1), [2]),
        (lq.MultiMatchQuery("hello", ["text"], boosts=[2.0]), [1, 3]),
        (lq.BoostQuery(lq.MatchQuery("number", "text"), lq.MatchQuery("world", "text")), [1, 2, 3]),
        (
            lq.BooleanQuery(
                [
                    (lq.Occur.MUST, lq.MatchQuery("number", "text")),
                    (lq.Occur.MUST_NOT, lq.MatchQuery("hello", "text")),
                ]
            ),
            [2],
        ),
    ],
    ids=["phrase", "fuzzy match", "multi match", "boost", "boolean"],
)
def test_structured_texts_are_found(lake: Lake, texts: Any, query: Any, ids: list[int]) -> None:
    assert sorted(found(lake, search(lake, texts, query, query_type="fts").limit(5))) == ids


@covers("text", "to_pandas", "to_polars", "to_pydantic", "fast_search", "order_by")
@covers("text", "explain_plan", "analyze_plan", "output_schema", "rerank")
def test_a_text_search_comes_in_every_form(lake: Lake, texts: Any) -> None:
    query = search(lake, texts, "world", query_type="fts").select(["id", "text"]).fast_search()
    assert lake.done(query.to_pandas())["id"].tolist() == [2]
    assert lake.done(query.to_polars()) is not None
    assert lake.done(query.to_pydantic(Person))[0].id == 2
    assert "MatchQuery" in lake.done(query.explain_plan())
    assert lake.done(query.analyze_plan())
    assert "id" in lake.done(query.output_schema()).names
    last = [lq.ColumnOrdering(column_name="id", ascending=False)]
    assert found(lake, search(lake, texts, "hello", query_type="fts").order_by(last)) == [3, 1]
    again = search(lake, texts, "world", query_type="fts").rerank(FarthestFirst())
    assert found(lake, again) == [2]


def hybrid(lake: Lake, table: Any) -> Any:
    if lake.mode == SYNC:
        return table.search(query_type="hybrid").vector(NEAR_ONE).text("hello")
    return table.query().nearest_to(NEAR_ONE).nearest_to_text("hello")


@covers("hybrid", "limit", "where", "select", "to_list", "rerank", "with_row_id")
@pytest.mark.parametrize("reranker", [RRFReranker, LinearCombinationReranker, MRRReranker])
def test_both_searches_are_reranked_by_the_client(lake: Lake, texts: Any, reranker: Any) -> None:
    query = hybrid(lake, texts).rerank(reranker()).where("id < 3").select(["id"]).limit(2)
    assert [row["id"] for row in lake.done(lake.with_row_id(query).to_list())] == [1, 2]


@covers("hybrid", "distance_type", "nprobes", "ef", "offset")
@covers("hybrid", "refine_factor", "bypass_vector_index", "distance_range")
@covers("hybrid", "to_arrow", "to_pandas", "to_polars", "to_pydantic")
@covers("hybrid", "explain_plan", "analyze_plan", "minimum_nprobes", "maximum_nprobes")
def test_both_searches_can_be_tuned(lake: Lake, texts: Any) -> None:
    query = hybrid(lake, texts).distance_type("l2").nprobes(4).refine_factor(2).ef(10).limit(2)
    query = query.distance_range(0.0, 100.0).offset(0).bypass_vector_index()
    if lake.mode == SYNC:
        query = query.minimum_nprobes(2).maximum_nprobes(8)
    assert lake.done(query.to_arrow())["id"].to_pylist()[0] == 1
    assert len(lake.done(query.to_pandas())) == 2
    assert lake.done(query.to_polars()) is not None
    assert lake.done(query.to_pydantic(Person))
    assert lake.done(query.explain_plan())
    assert lake.done(query.analyze_plan())


@covers("vector", "rerank")
def test_a_vector_search_is_reranked(lake: Lake, texts: Any) -> None:
    query = search(lake, texts, NEAR_ONE).rerank(FarthestFirst(), query_string="hello").limit(2)
    assert found(lake, query) == [2, 1]
