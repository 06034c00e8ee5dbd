"""Statements as clients ask for them: by Lance at once, by a runner, or not at all."""

import http.client
import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

from penstock.catalog.statements.statements import MAX_WAITING
from tests.catalog.conftest import Hasty
from tests.harness.data.arrow import send
from tests.harness.data.tables import code, new_name
from tests.harness.jobs.fake_runner import TEXTS, Column, Runner, cancel, describe, make_table
from tests.harness.jobs.statements import (
    GROUPED,
    ROWS,
    ask_and_lease,
    ask_sql,
    read_rows,
    send_result,
    to_stream,
)
from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS, until


@pytest.fixture
def place(server: Server) -> str:
    """A namespace with a table `t` of three texts."""
    return make_table(server).split("$")[0]


def find_results(server: Server) -> list[Path]:
    return list(server.data.rglob("_results/*"))


def test_lance_answers_filters_and_projections_at_once(server: Server, place: str) -> None:
    found = read_rows(ask_sql(server, place, "SELECT text AS word, id FROM t WHERE id > 1"))
    assert found.to_pydict() == {"word": ["bb", "ccc"], "id": [2, 3]}
    assert read_rows(ask_sql(server, place, "SELECT * FROM t LIMIT 2")).num_rows == 2
    assert read_rows(ask_sql(server, place, "SELECT * FROM t", limit=1)).num_rows == 1
    assert read_rows(ask_sql(server, place, "SELECT id FROM t", limit=0)).num_rows == 0
    full = read_rows(ask_sql(server, None, f"SELECT id FROM {place}.t"))
    assert full["id"].to_pylist() == [1, 2, 3]
    by_lance = ask_sql(server, place, "SELECT id FROM t WHERE id = 2", dialect="lance")
    assert read_rows(by_lance)["id"].to_pylist() == [2]
    other = ask_sql(server, place, 'SELECT "id" FROM "t" WHERE "text" = \'a\'', dialect="duckdb")
    assert read_rows(other)["id"].to_pylist() == [1]


def test_lance_counts_rows(server: Server, place: str) -> None:
    for sql, name, count in (
        ("SELECT count(*) FROM t", "count(1)", 3),
        ("SELECT COUNT(*) AS `how many` FROM t WHERE id > 1 AND text <> 'bb'", "how many", 1),
        ("select count(*) n from t where false", "n", 0),
    ):
        assert read_rows(ask_sql(server, place, sql)).to_pydict() == {name: [count]}
    assert read_rows(ask_sql(server, place, "SELECT count(*) FROM t", limit=0)).num_rows == 0
    for sql in (
        "SELECT count(id) FROM t",
        "SELECT count(DISTINCT id) FROM t",
        "SELECT count(*) FROM t WHERE upper(text) = 'A'",
        "SELECT count(*) FROM t HAVING count(*) > 5",
        "SELECT count(*) FILTER (WHERE id > 1) FROM t",
        "SELECT count(*) OVER () FROM t",
        "SELECT count(*) FROM t LIMIT 0",
    ):
        # Only Spark answers these; whether a runner was seen lately depends on other tests.
        assert ask_sql(server, place, sql, timeout_seconds=0.05).status_code in (503, 504), sql


def test_lance_answers_constants(server: Server, place: str) -> None:
    for sql, row in (
        ("SELECT 1 AS one, 'x' AS two, true AS yes FROM t", {"one": 1, "two": "x", "yes": True}),
        ("SELECT 1 AS `_rowid` FROM t WHERE id > 0", {"_rowid": 1}),
    ):
        assert read_rows(ask_sql(server, place, sql)).to_pylist() == [row] * 3
        assert read_rows(ask_sql(server, place, sql, limit=2)).to_pylist() == [row] * 2
    by_lance = ask_sql(server, place, "SELECT 5 AS five FROM t WHERE id = 2", dialect="lance")
    assert read_rows(by_lance).to_pylist() == [{"five": 5}]


def test_a_constant_is_no_column_of_that_name(server: Server, place: str) -> None:
    named = pa.table({"id": [1], "true": ["column"], "3000000000": ["column"]})
    send(server, f"/v1/table/{place}$named/create", named).raise_for_status()
    # Lance would take them for the columns; whether a runner was seen depends on other tests.
    for sql in ("SELECT id, TRUE AS t FROM named", "SELECT id, 3000000000 AS n FROM named"):
        assert ask_sql(server, place, sql, timeout_seconds=0.05).status_code in (503, 504), sql
    found = read_rows(ask_sql(server, place, "SELECT id, `true` AS t FROM named"))
    assert found["t"].to_pylist() == ["column"]


def test_a_large_result_of_lance_is_streamed(server: Server) -> None:
    place = new_name()
    server.post(f"/v1/namespace/{place}/create").raise_for_status()
    many = pa.table({"id": pa.array(range(300_000), pa.int64())})
    send(server, f"/v1/table/{place}$t/create", many).raise_for_status()
    answer = ask_sql(server, place, "SELECT id, id IS NULL AS gone FROM t")
    assert answer.headers["transfer-encoding"] == "chunked"
    assert read_rows(answer).num_rows == 300_000
    refused = ask_sql(server, place, "SELECT id FROM t WHERE id >= 10", max_rows=200_000)
    assert code(refused) == (400, 13)
    assert "more than 200000 rows" in refused.json()["error"]
    assert "LIMIT" in refused.json()["detail"]
    few = ask_sql(server, place, "SELECT id FROM t LIMIT 10", max_rows=10)
    assert read_rows(few).num_rows == 10


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"sql": ""}, "sql"),
        ({"sql": "  "}, "sql is empty"),
        ({"sql": "SELEC id FROM t"}, "sql:"),
        ({"sql": "SELECT id FROM t WHERE"}, "line 1"),
        ({"sql": "SELECT nope FROM t"}, "nope"),
        ({"sql": "SELECT id FROM tt"}, "tt is not in the catalog"),
        ({"sql": "SELECT 1"}, "reads no table"),
        ({"sql": "DELETE FROM t"}, "not a query"),
        ({"sql": "SELECT id FROM t; DROP TABLE t"}, "2 statements"),
        ({"sql": "INSERT INTO t SELECT * FROM t"}, "sql:"),
        ({"sql": "SELECT * FROM text.`/etc/passwd`"}, "passwd"),
        ({"sql": "SELECT reflect('java.lang.System', 'exit', 3) FROM t"}, "reflect"),
        ({"sql": "SELECT rand() AS r FROM t"}, "rand"),
        ({"sql": "SELECT id FROM t", "dialect": "cobol"}, "cobol"),
        ({"sql": "SELECT id FROM t", "limit": -1}, "limit"),
        ({"sql": "SELECT id FROM t", "limit": 1.5}, "limit"),
        ({"sql": "SELECT id FROM t", "timeout_seconds": 0}, "timeout_seconds"),
        ({"sql": "SELECT id FROM t", "max_rows": 0}, "max_rows"),
        ({"sql": "SELECT id FROM t", "namespace": "shop"}, "namespace"),
        ({"sql": "SELECT id FROM t", "namespace": ["a", ""]}, "namespace"),
        ({"sql": 3}, "sql"),
        ({}, "sql"),
        ({"sql": "SELECT max(id) FROM t", "cluster": "none"}, "none"),
    ],
)
def test_a_statement_that_cannot_be_is_refused(
    server: Server, place: str, body: dict[str, Any], says: str
) -> None:
    refused = server.client.post("/v1/sql", json={"namespace": [place]} | body)
    assert code(refused) == (400, 13)
    assert says in refused.json()["error"]
    assert "source_query" not in refused.text


def test_an_error_quotes_its_author_as_written(server: Server, place: str) -> None:
    refused = ask_sql(server, place, "SELECT `a view` FROM t").json()
    assert "a view" in refused["error"]
    send(server, f"/v1/table/{place}$source_query/create", TEXTS).raise_for_status()
    refused = ask_sql(server, place, "SELECT id FROM source_qery").json()
    assert refused["detail"] == f"there is {place}$source_query"


def test_a_name_that_nothing_has_is_told_with_near_ones(server: Server, place: str) -> None:
    send(server, f"/v1/table/{place}$texts/create", TEXTS).raise_for_status()
    refused = ask_sql(server, place, "SELECT id FROM text")
    assert refused.json()["detail"] == f"there is {place}$texts"


def test_of_many_names_that_differ_in_case_the_exact_one_is_read(
    server: Server, namespace: str
) -> None:
    names = ["".join(each) for each in itertools.product("aA", "bB", "cC", "dD")]
    for number, name in enumerate(names):
        rows = pa.table({"id": pa.array([number], pa.int64())})
        send(server, f"/v1/table/{namespace}${name}/create", rows).raise_for_status()
    for number, name in enumerate(names):
        found = read_rows(ask_sql(server, namespace, f"SELECT id FROM {name}"))
        assert found["id"].to_pylist() == [number], name


def test_a_runner_answers_everything_else(server: Server, place: str, cluster: str) -> None:
    answer, job = ask_and_lease(server, place, cluster, limit=7, max_bytes=5000)
    assert job["kind"] == "statement"
    (source,) = job["spec"]["statement"]["sources"]
    assert (source["table"], source["reads"]) == ([place, "t"], ["text"])
    assert (job["spec"]["limit"], job["spec"]["max_bytes"]) == (7, 5000)
    assert job["spec"]["source_ids"] == [source["id"]]
    assert send_result(server, job).status_code == 200
    assert len(find_results(server)) == 1
    Runner(server, cluster).finish(job, result={"rows": 3}).raise_for_status()
    assert read_rows(answer.result(PATIENCE_SECONDS)) == ROWS
    assert find_results(server) == []
    told = describe(server, job["id"])
    assert told["status"] == "SUCCEEDED"
    assert '"bb"' not in json.dumps(told)


def test_a_renamed_table_is_found_and_a_dropped_one_is_told(
    server: Server, place: str, cluster: str
) -> None:
    wanted = {"cluster": cluster, "timeout_seconds": 30}
    client = http.client.HTTPConnection(urlsplit(server.url).netloc)
    body = json.dumps({"sql": GROUPED, "namespace": [place]} | wanted)
    # A runner that was seen is waited for.
    assert Runner(server, cluster).lease() == []
    client.request("POST", "/v1/sql", body, {"content-type": "application/json"})
    target = {"kind": "statement", "target": f"{place}$t"}
    until(lambda: server.post("/v1/jobs/list", target).json()["jobs"])
    server.post(f"/v1/table/{place}$t/rename", {"new_table_name": "u"}).raise_for_status()
    (job,) = Runner(server, cluster).lease(wait_seconds=20)
    assert job["spec"]["statement"]["sources"][0]["table"] == [place, "u"]
    Runner(server, cluster).finish(job, "FAILED", error="enough").raise_for_status()
    assert client.getresponse().status == 400


@pytest.mark.parametrize(("retryable", "status"), [(False, (400, 13)), (True, (503, 17))])
def test_a_statement_that_fails_says_why(
    server: Server, place: str, cluster: str, retryable: bool, status: tuple[int, int]
) -> None:
    answer, job = ask_and_lease(server, place, cluster)
    error = "source_1.text is wrong; cast it"
    Runner(server, cluster).finish(job, "FAILED", error=error, retryable=retryable)
    assert code(answer.result(PATIENCE_SECONDS)) == status
    said = answer.result().json()
    assert "is wrong" in said["error"]
    if not retryable:
        assert (said["error"], said["detail"]) == (f"sql: {place}.t.text is wrong", "cast it")


def test_without_a_runner_the_answer_says_to_start_one(lonely: Server) -> None:
    place = make_table(lonely).split("$")[0]
    refused = ask_sql(lonely, place, GROUPED)
    assert code(refused) == (503, 17)
    assert "start a runner" in refused.json()["detail"]
    waiting = lonely.post("/v1/jobs/list", {"state": "in_progress"}).json()
    assert waiting["jobs"] == []


def test_a_statement_whose_time_is_up_is_ended(server: Server, place: str, cluster: str) -> None:
    answer, job = ask_and_lease(server, place, cluster, timeout_seconds=1.5)
    assert code(answer.result(PATIENCE_SECONDS)) == (504, 17)
    assert "more time" in answer.result().json()["detail"]
    assert Runner(server, cluster).report(job).json()["cancel"]
    # Nobody would come for it.
    assert send_result(server, job).status_code == 409
    assert find_results(server) == []


def test_statements_beyond_those_that_may_wait_are_turned_away(
    server: Server, place: str, cluster: str
) -> None:
    assert Runner(server, cluster).lease() == []
    waiting = {"kind": "statement", "state": "QUEUED"}
    with ThreadPoolExecutor(MAX_WAITING + 8) as pool:
        asked = [
            pool.submit(ask_sql, server, place, GROUPED, cluster=cluster)
            for _ in range(MAX_WAITING + 8)
        ]
        until(lambda: sum(each.done() for each in asked) == 8, "not 8 of them are turned away")
        refused = [each for each in asked if each.done()]
        assert [code(each.result()) for each in refused] == [(429, 21)] * 8
        jobs = server.post("/v1/jobs/list", waiting).json()["jobs"]
        assert len(jobs) == MAX_WAITING
        for job in jobs:
            cancel(server, job["job_id"]).raise_for_status()
        codes = [code(each.result(PATIENCE_SECONDS)) for each in asked if each not in refused]
    assert codes == [(504, 17)] * MAX_WAITING
    assert server.post("/v1/jobs/list", waiting).json()["jobs"] == []


def test_a_client_that_goes_away_ends_its_statement(
    server: Server, place: str, cluster: str
) -> None:
    client = http.client.HTTPConnection(urlsplit(server.url).netloc)
    body = json.dumps({"sql": GROUPED, "namespace": [place], "cluster": cluster})
    client.request("POST", "/v1/sql", body, {"content-type": "application/json"})
    (job,) = Runner(server, cluster).lease(wait_seconds=20)
    client.close()
    until(lambda: Runner(server, cluster).report(job).json()["cancel"])


def test_only_the_holder_of_a_statement_sends_its_result(
    server: Server, place: str, cluster: str, column: Column
) -> None:
    answer, job = ask_and_lease(server, place, cluster, max_bytes=100)
    assert send_result(server, job, attempt=2).status_code == 409
    assert code(send_result(server, job, attempt="x")) == (400, 13)
    assert send_result(server, job | {"id": "none"}).status_code == 404
    # More than the limit, by far.
    large = to_stream(pa.table({"n": pa.array(range(3_000_000), pa.int64())}))
    assert code(send_result(server, job, large)) == (400, 13)
    assert find_results(server) == []
    column.request()
    (other,) = column.runner.lease()
    refused = send_result(server, other)
    assert code(refused) == (400, 13)
    assert "no rows to send" in refused.json()["error"]
    cancel(server, job["id"]).raise_for_status()
    Runner(server, cluster).finish(job, "CANCELED").raise_for_status()
    assert code(answer.result(PATIENCE_SECONDS)) == (504, 17)


def test_results_that_nobody_took_are_swept(tmp_path: Path) -> None:
    environ = {
        "PENSTOCK__CATALOG__STAGED_SECONDS": "1",
        "PENSTOCK__CATALOG__MAINTAIN_SECONDS": "1",
    }
    with servers.running(tmp_path, environ=environ) as server:
        place = make_table(server).split("$")[0]
        _, job = ask_and_lease(server, place, "local", timeout_seconds=5)
        send_result(server, job).raise_for_status()
        assert len(find_results(server)) == 1
        until(lambda: not find_results(server))


def test_the_runner_may_talk_to_another_server(postgres: str, tmp_path: Path) -> None:
    database = new_postgres_database(postgres)
    with (
        servers.running(tmp_path, database=database) as one,
        servers.running(tmp_path, database=database) as other,
    ):
        place = make_table(one).split("$")[0]
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(ask_sql, one, place, GROUPED)
            runner = Runner(other, "local")
            (job,) = runner.lease(wait_seconds=20)
            send_result(other, job).raise_for_status()
            runner.finish(job, result={"rows": 3}).raise_for_status()
            assert read_rows(answer.result(PATIENCE_SECONDS)) == ROWS
        assert find_results(one) == []


def test_a_runner_that_falls_silent_is_told(hasty: Hasty) -> None:
    server = hasty.server
    place = make_table(server).split("$")[0]
    answer, job = ask_and_lease(server, place, "c0")
    hasty.fall_silent(job["id"])
    late = answer.result(PATIENCE_SECONDS)
    assert code(late) == (503, 17)
    assert "stopped reporting" in late.json()["error"]
