"""Searches whose parameters ask Lance for all memory there is: bounded by the table, or refused."""

from typing import Any

import pytest

from tests.harness.data.rows import documents, put, query
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)
NEAR = [0.5] * 8


@pytest.fixture(scope="module")
def table(server: Server) -> Table:
    table, dataset = put(server, documents(600))
    dataset.create_index("vector", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    dataset.create_scalar_index("body", "INVERTED")
    return table


@pytest.mark.parametrize(
    "tuning",
    [
        {"k": 10**12},
        {"k": 2**63 - 1},
        {"k": 10, "offset": 10**12},
        {"k": 10, "refine_factor": 2**31 - 1},
        {"k": 10, "ef": 2**31 - 1},
        {"k": 10, "nprobes": 2**31 - 1},
    ],
)
def test_a_search_ranks_no_more_rows_than_the_table_has(
    table: Table, tuning: dict[str, Any]
) -> None:
    found = query(table, vector=NEAR, columns=["id"], **tuning)
    assert found.num_rows == (0 if "offset" in tuning else min(600, tuning["k"]))


@pytest.mark.parametrize("several", [{"k": 1, "count": 1001}, {"k": 10**6, "count": 1000}])
def test_more_than_a_search_ranks_is_refused(server: Server, several: dict[str, int]) -> None:
    table, _ = put(server, documents(1100))
    vector = {"multi_vector": [NEAR] * several["count"]}
    answer = table.ask("query", {"vector": vector, "k": several["k"]})
    assert answer.status_code == 400
    assert code(answer) == (400, 13)


@pytest.mark.parametrize(
    "search",
    [
        {"string_query": {"query": "apple " * 100_000}},
        {"string_query": {"query": "apple", "columns": ["body"] * 10_000}},
        {"structured_query": {"query": {"match": {"terms": "a" * 10**6, "fuzziness": 2}}}},
        {"structured_query": {"query": {"phrase": {"terms": "apple pie " * 50_000}}}},
        {
            "structured_query": {
                "query": {"boolean": {"should": [{"match": {"terms": "pie"}}] * 20_000}}
            }
        },
        {
            "structured_query": {
                "query": {"multi_match": {"match_queries": [{"terms": "pie"}] * 5_000}}
            }
        },
    ],
    ids=["words", "columns", "fuzzy", "phrase", "boolean", "multi_match"],
)
def test_a_text_search_of_too_many_words_or_queries_is_refused(table: Table, search: Any) -> None:
    answer = table.ask("query", {"full_text_query": search, "k": 1})
    assert code(answer) == (400, 13)
    assert "full_text_query" in answer.text
