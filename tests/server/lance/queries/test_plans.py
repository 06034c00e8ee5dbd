"""ExplainTableQueryPlan and AnalyzeTableQueryPlan: a bare text about the query's plan."""

from typing import Any

import pytest

from tests.harness.data.rows import documents, put
from tests.harness.data.tables import Table, code, declare
from tests.harness.processes.servers import Server

NEAR = {"vector": {"single_vector": [0.5] * 8}, "k": 3}
WORDS = {"string_query": {"query": "banana", "columns": ["title"]}}


@pytest.fixture(scope="module")
def table(server: Server) -> Table:
    table, dataset = put(server, documents(10))
    dataset.create_branch("dev").add_columns({"only_here": "id + 1"})
    return table


def plan(table: Table, operation: str, body: dict[str, Any]) -> str:
    answer = table.ask(operation, body)
    assert answer.status_code == 200, answer.text
    assert isinstance(answer.json(), str)
    return str(answer.json())


def test_a_plan_shows_what_would_be_done(table: Table) -> None:
    found = plan(table, "explain_plan", {"query": NEAR | {"filter": "id < 5", "offset": 2}})
    assert "KNNVectorDistance" in found
    assert "fetch=5" in found
    assert "id < 5" in found or "id@" in found
    assert "MatchQuery" in plan(table, "explain_plan", {"query": {"full_text_query": WORDS}})


def test_a_verbose_plan_says_more(table: Table) -> None:
    query = {"query": {"filter": "id < 5", "columns": ["title"], "k": 2}}
    brief, verbose = (plan(table, "explain_plan", query | {"verbose": v}) for v in (False, True))
    assert "title: string" not in brief
    assert "title: string" in verbose


def test_an_analysis_has_run_the_query(table: Table) -> None:
    found = plan(table, "analyze_plan", NEAR | {"filter": "id < 5", "prefilter": True})
    assert "output_rows=3" in found
    assert "metrics" in found


def test_a_fused_search_has_two_plans(table: Table) -> None:
    query = NEAR | {"full_text_query": WORDS}
    for operation, body in (("explain_plan", {"query": query}), ("analyze_plan", query)):
        found = plan(table, operation, body)
        assert found.index("Vector search:") < found.index("KNNVectorDistance")
        assert found.index("Text search:") < found.index("MatchQuery")


@pytest.mark.parametrize("where", ["outside", "inside"])
def test_the_branch_decides_about_columns(table: Table, where: str) -> None:
    query: dict[str, Any] = {"columns": ["only_here"], "k": 1}
    assert code(table.ask("explain_plan", {"query": query})) == (404, 12)
    assert code(table.ask("analyze_plan", query)) == (404, 12)
    assert "only_here" in plan(table, "analyze_plan", query | {"branch": "dev"})
    body: dict[str, Any] = {"query": query | {"branch": "dev"}}
    if where == "outside":
        body = {"query": query, "branch": "dev"}
    assert "only_here" in plan(table, "explain_plan", body)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (NEAR | {"vector": [1.0]}, (400, 13)),
        ({"filter": "id >"}, (400, 13)),
        ({"filter": "nope > 1"}, (404, 12)),
        ({"full_text_query": {}}, (400, 13)),
        ({"version": 99}, (404, 11)),
        ({"branch": "nope"}, (404, 22)),
    ],
)
def test_a_query_that_cannot_be_has_no_plan(
    table: Table, query: dict[str, Any], expected: tuple[int, int]
) -> None:
    assert code(table.ask("explain_plan", {"query": query})) == expected
    assert code(table.ask("analyze_plan", query)) == expected


def test_a_plan_needs_a_query_and_data(table: Table, server: Server, namespace: str) -> None:
    assert code(table.ask("explain_plan", {"verbose": True})) == (400, 13)
    empty = declare(server, f"{namespace}$t")
    assert code(empty.ask("explain_plan", {"query": {"k": 1}})) == (400, 19)
    assert code(empty.ask("analyze_plan", {"k": 1})) == (400, 19)
