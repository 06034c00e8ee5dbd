"""Views whose columns only Spark can type, made without a schema on a real server and runner."""

import datetime
from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.tables import code
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import make_source, make_view

pytestmark = pytest.mark.timeout(400)

WORDS = "SELECT id, explode(split(text, ' ')) AS word FROM t WHERE id < 3"
RANKS = (
    "SELECT id, row_number() OVER (PARTITION BY kind ORDER BY id) AS n,"
    " date_trunc('MONTH', make_timestamp_ntz(2024, 5, 17, 1, 2, 3)) AS month,"
    " CAST(id AS DECIMAL(10, 2)) * 1.5 AS price FROM t WHERE id < 4"
)
LISTS = "SELECT kind, sort_array(collect_list(id)) AS ids FROM t GROUP BY kind"


def test_views_are_created_without_a_schema(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(6))
    words, ranks = make_view(source, WORDS, "words"), make_view(source, RANKS, "ranks")
    lists = make_view(source, LISTS, "lists")
    for view in (words, ranks, lists):
        view.refresh()
    assert words.show("id", "word") == [
        (0, "w0-0"), (1, "w1-0"), (1, "w1-1"), (2, "w2-0"), (2, "w2-1"), (2, "w2-2"),
    ]  # fmt: skip
    month = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
    assert [row[:2] for row in ranks.show("id", "n")] == [(0, 1), (1, 1), (2, 1), (3, 2)]
    assert {row[0] for row in ranks.show("month")} == {month}
    assert str(ranks.open().schema.field("price").type).startswith("decimal128(")
    assert lists.show("kind", "ids") == [("k0", [0, 3]), ("k1", [1, 4]), ("k2", [2, 5])]
    assert make_view(source, "SELECT word AS again FROM words", "above").refresh()


def test_an_iceberg_view_may_have_such_columns(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(4))
    made = iceberg.create(source.namespace, "parts", f"{WORDS} ")
    made.body["view-version"]["default-namespace"] = [source.namespace]
    assert server.client.post(made.path, json=made.body).status_code == 200
    view = make_view(source, "SELECT upper(p.word) AS word, t.kind FROM parts p JOIN t USING (id)")
    view.refresh()
    assert ("W2-2", "k2") in view.show("word", "kind")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT array_join(id, ',') AS c FROM t", "DATATYPE_MISMATCH"),
        ("SELECT parse_json(text) AS c FROM t", "column c is variant"),
        ("SELECT transform(text, x -> x) AS c FROM t", "DATATYPE_MISMATCH"),
    ],
)
def test_what_spark_refuses_is_a_bad_request(
    server: Server, runner: RunnerProcess, query: str, says: str
) -> None:
    source = make_source(server, range(3))
    body: dict[str, Any] = {"kind": "query", "source_query": query}
    refused = server.post(f"/v1/materialized_view/{source.namespace}$v/create", body)
    assert code(refused) == (400, 13)
    assert says in refused.json()["error"]
    assert "source_1" not in refused.text
