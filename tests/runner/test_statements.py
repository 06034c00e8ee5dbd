"""Statements on a real server and runner: SQL without a view."""

import datetime
from typing import Any

import httpx
import lance
import pyarrow as pa
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.clients.pylance import connect
from tests.harness.data.tables import code
from tests.harness.jobs.statements import ask_sql, read_rows
from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import Source, make_source, make_view

pytestmark = pytest.mark.timeout(400)

RECURSION = (
    "WITH RECURSIVE r(n) AS (SELECT min(id) FROM t UNION ALL SELECT n + 1 FROM r WHERE n < 1000000)"
    " SELECT count(*) FROM r"
)


def ask(source: Source, sql: str, **body: Any) -> httpx.Response:
    return ask_sql(source.server, source.namespace, sql, **body)


def test_spark_answers_what_lance_cannot(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(9))
    found = read_rows(ask(source, "SELECT kind, count(*), max(id) AS top FROM t GROUP BY kind"))
    assert found.column_names == ["kind", "count(1)", "top"]
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
        ("k0", 3, 6), ("k1", 3, 7), ("k2", 3, 8),
    ]  # fmt: skip


def test_the_order_and_the_offset_are_kept(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(40))
    found = read_rows(ask(source, "SELECT id FROM t ORDER BY id DESC LIMIT 5 OFFSET 3"))
    assert found["id"].to_pylist() == [36, 35, 34, 33, 32]
    found = read_rows(ask(source, "SELECT id FROM t ORDER BY kind, id DESC"))
    wanted = sorted(range(40), key=lambda each: (each % 3, -each))
    assert found["id"].to_pylist() == wanted
    assert read_rows(ask(source, "SELECT id FROM t ORDER BY id", limit=2))["id"].to_pylist() == [
        0,
        1,
    ]


def test_the_clock_is_read_once(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(5))
    sql = "SELECT DISTINCT now() AS at, current_date() = CAST(now() AS DATE) AS same FROM t"
    (found,) = read_rows(ask(source, sql)).to_pylist()
    assert found["same"]
    assert abs((found["at"] - datetime.datetime.now(datetime.UTC)).total_seconds()) < 100


def test_outputs_may_share_a_name_and_a_star_keeps_the_columns_in_order(
    server: Server, runner: RunnerProcess
) -> None:
    source = make_source(server, range(3))
    found = read_rows(ask(source, "SELECT a.*, b.title, 1 + 1 FROM t a JOIN t b ON a.id = b.id"))
    assert found.column_names == ["id", "text", "title", "kind", "title", "(1 + 1)"]
    assert found.column(2) == found.column(4)


def test_columns_keep_the_types_of_their_tables(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(2))
    vectors = pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"id": pa.array([0, 1], pa.uint8()), "v": vectors})
    lance.write_dataset(
        table, namespace_client=connect(server), table_id=[source.namespace, "vectors"]
    )
    found = read_rows(ask(source, "SELECT v.v, v.id, t.text FROM vectors v JOIN t ON t.id = v.id"))
    assert found.schema.field("v").type == pa.list_(pa.float32(), 2)
    assert found.schema.field("id").type == pa.uint8()
    assert found.sort_by("id")["v"].to_pylist() == [[1.0, 2.0], [3.0, 4.0]]
    empty = read_rows(ask(source, "SELECT max(id) AS m, v FROM vectors WHERE id > 5 GROUP BY v"))
    assert (empty.num_rows, empty.column_names) == (0, ["m", "v"])


def test_views_of_both_kinds_are_read_like_tables(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(6))
    made = iceberg.create(source.namespace, "words", "SELECT id, upper(text) AS loud FROM t")
    made.body["view-version"]["default-namespace"] = [source.namespace]
    assert server.client.post(made.path, json=made.body).status_code == 200
    view = make_view(source, "SELECT id, kind FROM t WHERE id > 3", "some")
    view.refresh()
    sql = "SELECT s.id, w.loud FROM some s JOIN words w ON s.id = w.id ORDER BY s.id"
    found = read_rows(ask(source, sql))
    assert found["id"].to_pylist() == [4, 5]
    assert found["loud"].to_pylist() == ["W4-0 W4-1", "W5-0 W5-1 W5-2"]
    trino = 'SELECT "id" FROM t WHERE "kind" = \'k1\' ORDER BY id'
    assert read_rows(ask(source, trino, dialect="trino"))["id"].to_pylist() == [1, 4]


@pytest.mark.parametrize(
    ("sql", "body", "says"),
    [
        ("SELECT array_join(id, ',') FROM t", {}, "DATATYPE_MISMATCH"),
        ("SELECT CAST(text AS INT) FROM t", {}, "CAST_INVALID_INPUT"),
        ("SELECT id, NULL AS n FROM t", {}, "column n is void"),
        (RECURSION, {}, "RECURSION_LEVEL_LIMIT_EXCEEDED"),
        (
            "SELECT if(id < 0, text, raise_error('spark.driver.maxResultSize')) AS n FROM t",
            {},
            "USER_RAISED_EXCEPTION",
        ),
        ("SELECT a.id FROM t a CROSS JOIN t b", {"max_rows": 10}, "more than 10 rows"),
        ("SELECT repeat(text, 10000) FROM t", {"max_bytes": 1000}, "more than 1000 bytes"),
    ],
)
def test_what_cannot_be_answered_says_why(
    server: Server, runner: RunnerProcess, sql: str, body: dict[str, Any], says: str
) -> None:
    source = make_source(server, range(6))
    refused = ask(source, sql, **body)
    assert code(refused) == (400, 13)
    assert says in refused.json()["error"]
    assert refused.json()["detail"]
    assert "source_1" not in refused.text


def test_a_statement_that_takes_too_long_is_ended(server: Server, runner: RunnerProcess) -> None:
    source = make_source(server, range(2000))
    # Minutes in all, but only moments for each row of `a`, between which Spark can be stopped.
    slow = "SELECT count(*) FROM t a, t b, t c WHERE a.id + b.id < c.id"
    late = ask(source, slow, timeout_seconds=2)
    assert code(late) == (504, 17)
    assert "2 seconds" in late.json()["error"]

    def is_over() -> bool:
        body = {"kind": "statement", "state": "RUNNING"}
        return not server.post("/v1/jobs/list", body).json()["jobs"]

    until(is_over)


@pytest.mark.slow
def test_a_statement_that_takes_all_memory_is_told_and_not_run_again(
    server: Server, runner: RunnerProcess
) -> None:
    source = make_source(server, range(20))
    sql = "SELECT sum(size(sequence(1, 1000000000 + id))) AS n FROM t"
    refused = ask(source, sql, timeout_seconds=120)
    assert code(refused) == (400, 13)
    assert "out of memory" in refused.json()["error"]
    assert read_rows(ask(source, "SELECT count(DISTINCT kind) AS n FROM t")).to_pylist() == [
        {"n": 3}
    ]
