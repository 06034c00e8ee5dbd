"""QueryTable by text, and by vector and text together; results compared with pylance's own."""

from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import query as lq

from tests.harness.data.rows import documents, ids, put, query
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server

Pair = tuple[Table, lance.LanceDataset]
NEAR = [0.5] * 8
PIE = lq.MatchQuery("banana", "body")


@pytest.fixture(scope="module")
def pair(server: Server) -> Pair:
    """Documents with a full-text index on both texts."""
    table, dataset = put(server, documents())
    dataset.create_scalar_index("body", "INVERTED", with_position=True)
    dataset.create_scalar_index("title", "INVERTED", with_position=False)
    return table, dataset


def by_words(words: str, *columns: str) -> dict[str, Any]:
    return {"string_query": {"query": words, "columns": list(columns) or None}}


def by(**clause: Any) -> dict[str, Any]:
    return {"structured_query": {"query": clause}}


def banana(column: str = "body", **options: Any) -> dict[str, Any]:
    return {"match": {"terms": "banana", "column": column} | options}


def both(found: pa.Table) -> list[tuple[int, float]]:
    """Rows with their scores; pylance leaves the order of equal scores open."""
    return sorted(zip(ids(found), found["_score"].to_pylist(), strict=True))


def test_words_are_searched_in_named_columns(pair: Pair) -> None:
    table, dataset = pair
    found = query(table, full_text_query=by_words("banana", "title"))
    assert ids(found) == ids(dataset.to_table(full_text_query=lq.MatchQuery("banana", "title")))
    assert all("banana" in title for title in found["title"].to_pylist())
    assert found.num_rows == 40


def test_words_are_searched_in_all_indexed_columns(pair: Pair) -> None:
    table, dataset = pair
    expected = both(dataset.to_table(full_text_query="banana"))
    assert both(query(table, full_text_query=by_words("banana"))) == expected
    anywhere = by(match={"terms": "banana"})
    assert both(query(table, full_text_query=anywhere)) == expected


def test_k_rows_come_after_the_offset(pair: Pair) -> None:
    table, dataset = pair
    every = dataset.to_table(full_text_query=PIE, limit=12)
    found = query(table, full_text_query=by(**banana()), k=7, offset=5)
    assert ids(found) == ids(every)[5:]
    assert query(table, full_text_query=by(**banana()), k=0).num_rows == 0


def test_a_filter_works_before_or_after_the_search(pair: Pair) -> None:
    table, dataset = pair
    wanted = {"full_text_query": by(**banana()), "k": 10, "filter": "id > 150"}
    best = ids(dataset.to_table(full_text_query=PIE, limit=10))
    assert ids(query(table, **wanted)) == [id for id in best if id > 150]
    before = query(table, **wanted, prefilter=True)
    assert before.num_rows == 10
    assert min(ids(before)) > 150


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (banana(boost=3.0), lq.MatchQuery("banana", "body", boost=3.0)),
        (
            {"match": {"terms": "banana cherry", "column": "body", "operator": "And"}},
            lq.MatchQuery("banana cherry", "body", operator=lq.FullTextOperator.AND),
        ),
        (
            {"match": {"terms": "bananna", "column": "body", "fuzziness": 1}},
            lq.MatchQuery("bananna", "body", fuzziness=1),
        ),
        (
            {"match": {"terms": "bxnana", "column": "body", "fuzziness": 1, "prefix_length": 2}},
            lq.MatchQuery("bxnana", "body", fuzziness=1, prefix_length=2),
        ),
        (
            {"match": {"terms": "number1", "column": "body", "fuzziness": 2, "max_expansions": 3}},
            lq.MatchQuery("number1", "body", fuzziness=2, max_expansions=3),
        ),
        (
            {"phrase": {"terms": "apple pie", "column": "body"}},
            lq.PhraseQuery("apple pie", "body"),
        ),
        (
            {"phrase": {"terms": "apple number5", "column": "body", "slop": 1}},
            lq.PhraseQuery("apple number5", "body", slop=1),
        ),
        (
            {"boost": {"positive": banana(), "negative": banana("title"), "negative_boost": 0.2}},
            lq.BoostQuery(PIE, lq.MatchQuery("banana", "title"), negative_boost=0.2),
        ),
        (
            {"boolean": {"must": [banana()], "must_not": [banana("title")], "should": []}},
            lq.BooleanQuery(
                [(lq.Occur.MUST, PIE), (lq.Occur.MUST_NOT, lq.MatchQuery("banana", "title"))]
            ),
        ),
        (
            {"boolean": {"should": [banana(), {"match": {"terms": "date", "column": "title"}}]}},
            lq.BooleanQuery(
                [(lq.Occur.SHOULD, PIE), (lq.Occur.SHOULD, lq.MatchQuery("date", "title"))]
            ),
        ),
        (
            {
                "multi_match": {
                    "match_queries": [
                        {"terms": "banana", "column": "body"},
                        {"terms": "banana", "column": "title", "boost": 2.0},
                    ]
                }
            },
            lq.MultiMatchQuery("banana", ["body", "title"], boosts=[1.0, 2.0]),
        ),
    ],
)
def test_each_kind_of_structured_query(
    pair: Pair, clause: dict[str, Any], expected: lq.FullTextQuery
) -> None:
    table, dataset = pair
    found = query(table, full_text_query=by(**clause))
    assert both(found) == both(dataset.to_table(full_text_query=expected))


def test_the_kinds_of_query_find_different_rows(pair: Pair) -> None:
    table, _ = pair
    near = {"terms": "apple number5", "column": "body"}
    found = [
        query(table, full_text_query=by(**clause)).num_rows
        for clause in (
            banana(),
            {"phrase": near},
            {"phrase": near | {"slop": 1}},
            {"match": {"terms": "bananna", "column": "body"}},
            {"match": {"terms": "bananna", "column": "body", "fuzziness": 1}},
            {"match": {"terms": "xanana", "column": "body", "fuzziness": 1, "prefix_length": 1}},
            {"boolean": {"must": [banana()], "must_not": [banana("title")]}},
        )
    ]
    assert found == [93, 0, 1, 0, 93, 0, 80]


def test_several_unlike_matches_add_up(pair: Pair) -> None:
    table, _ = pair
    one, other = banana()["match"], {"terms": "date", "column": "title"}
    several = by(multi_match={"match_queries": [one, other]})
    together = by(boolean={"should": [{"match": one}, {"match": other}]})
    expected = both(query(table, full_text_query=together))
    assert both(query(table, full_text_query=several)) == expected


def test_named_columns_are_searched_without_an_index(server: Server) -> None:
    table, _ = put(server, documents(20))
    assert query(table, full_text_query=by_words("banana", "title")).num_rows == 4
    answer = table.ask("query", {"full_text_query": by_words("banana")})
    assert code(answer) == (400, 13)
    assert "full-text index" in answer.json()["error"]


def deep(levels: int) -> dict[str, Any]:
    clause = banana()
    for _ in range(levels):
        clause = {"boolean": {"must": [clause]}}
    return clause


PRINTED = 'Match(MatchQuery { column: None, terms: "banana", boost: 1.0 })'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (by_words("banana", "nope"), (404, 12)),
        (by(**banana("nope")), (404, 12)),
        (by_words("banana", "id"), (400, 13)),
        (by(phrase={"terms": "a banana", "column": "title"}), (400, 13)),
        (by(boolean={"must_not": [banana()]}), (400, 13)),
        (by(boolean={}), (400, 13)),
        (by(multi_match={"match_queries": []}), (400, 13)),
        (by(**banana(operator="xor")), (400, 13)),
        (by(**banana(fuzziness=1000)), (400, 13)),
        (by(), (400, 13)),
        (by(**banana(), phrase={"terms": "x"}), (400, 13)),
        (by(**deep(40)), (400, 13)),
        (by(**deep(300)), (400, 13)),
        ({}, (400, 13)),
        (by_words("x") | by(**banana()), (400, 13)),
        ("banana", (400, 13)),
        (by_words(PRINTED), (400, 13)),
    ],
)
def test_a_search_that_cannot_be_is_the_clients_error(
    pair: Pair, text: object, expected: tuple[int, int]
) -> None:
    assert code(pair[0].ask("query", {"full_text_query": text, "k": 5})) == expected


def test_vector_and_text_are_fused_by_rank(pair: Pair) -> None:
    table, dataset = pair
    by_vector = dataset.to_table(nearest={"column": "vector", "q": NEAR, "k": 30})
    by_text = dataset.to_table(full_text_query=PIE, limit=30)
    expected: dict[int, float] = {}
    for found in (by_vector, by_text):
        for rank, id in enumerate(ids(found), 1):
            expected[id] = expected.get(id, 0) + 1 / (60 + rank)
    order = sorted(expected, key=lambda row: -expected[row])
    wanted = {"vector": NEAR, "full_text_query": by(**banana())}
    fused = query(table, **wanted, k=30)
    assert ids(fused) == order[:30]
    scores = fused["_relevance_score"].to_pylist()
    assert scores == pytest.approx([expected[id] for id in order[:30]])
    distances = dict(zip(ids(by_vector), by_vector["_distance"].to_pylist(), strict=True))
    assert fused["_distance"].to_pylist() == [distances.get(id) for id in ids(fused)]
    assert ids(query(table, **wanted, k=20, offset=10)) == order[10:30]


def test_a_fused_search_takes_filter_columns_and_row_ids(pair: Pair) -> None:
    table, _ = pair
    wanted = {"vector": NEAR, "full_text_query": by(**banana()), "k": 6}
    found = query(table, **wanted, columns=["id", "_distance"], with_row_id=True)
    assert found.schema.names == ["id", "_distance", "_score", "_relevance_score", "_rowid"]
    made = query(table, **wanted, columns={"twice": "id * 2"})
    assert made["twice"].to_pylist() == [2 * id for id in ids(found)]
    chosen = query(table, **wanted, filter="id < 20", prefilter=True)
    assert chosen.num_rows == 6
    assert max(ids(chosen)) < 20
    assert query(table, **wanted, filter="id < 0").num_rows == 0
    assert query(table, **wanted | {"k": 0}).num_rows == 0


def test_a_fused_search_has_limits(pair: Pair) -> None:
    table, _ = pair
    wanted = {"full_text_query": by(**banana()), "k": 5}
    assert code(table.ask("query", wanted | {"vector": [NEAR, NEAR]})) == (400, 13)
    assert code(table.ask("query", wanted | {"vector": NEAR, "k": 10**6})) == (400, 13)
    assert code(table.ask("query", wanted | {"vector": [1.0]})) == (400, 13)
