"""Refreshes of views: what is checked before they are queued, what a runner gets, what stays."""

import json
from typing import Any

import pyarrow as pa
import pytest

from penstock.lance.columns.schemas import decode_schema
from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import TEXTS, cancel, describe
from tests.harness.processes.servers import Server
from tests.harness.views.definitions import encode_schema, make_column_udf
from tests.harness.views.server_views import View, ask_create, head, make_view

OPTIONS = {
    "src_version": 1,
    "max_rows_per_fragment": 10,
    "concurrency": 2,
    "intra_applier_concurrency": 3,
    "source_task_size": 4,
    "checkpoint_size": 6,
    "min_checkpoint_size": 2,
    "max_checkpoint_size": 8,
    "batch_checkpoint_flush_interval_seconds": 0.5,
    "mode": "full",
    "verify_rows": 5,
}


def failure(row_id: int, **more: Any) -> dict[str, Any]:
    """A row that a function failed on, as a runner tells of it."""
    return {
        "row_id": row_id,
        **dict.fromkeys(("fragment", "offset", "at"), 0),
        **dict.fromkeys(("inputs", "exception", "message", "traceback"), "x"),
        "tries": 1,
    } | more


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    return make_view(server, cluster)


def test_the_spec_says_all_that_a_runner_needs(view: View) -> None:
    view.request(**OPTIONS)
    job = view.lease()
    spec = job["spec"]
    assert {key: spec[key] for key in OPTIONS} == OPTIONS
    assert spec["table"] == view.id.split("$")
    assert (spec["verify"], spec["output_limit"], spec["watermark"]) == (True, None, None)
    definition = spec["definition"]
    assert (definition["kind"], definition["shape"]) == ("query", "rows")
    read = decode_schema(definition["sources"][0]["types"])
    assert read == pa.schema([("id", pa.int64()), ("text", pa.string())])
    assert definition["sources"][0]["table"] == view.source.split("$")


def test_lancedb_has_words_of_its_own(view: View) -> None:
    view.request(full=True, source_version=1)
    spec = view.lease()["spec"]
    assert (spec["mode"], spec["src_version"]) == ("full", 1)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"output_limit": 3}, (400, 13)),
        ({"src_version": 99}, (404, 11)),
        ({"src_version": -1}, (400, 13)),
        ({"src_version": 1, "source_version": 2}, (400, 13)),
        ({"full": True, "mode": "incremental"}, (400, 13)),
        ({"mode": "sometimes"}, (400, 13)),
        ({"concurrency": 0}, (400, 13)),
        ({"max_rows_per_fragment": 0}, (400, 13)),
        ({"cluster": "nowhere"}, (400, 13)),
        ({"manifest": "{"}, (400, 13)),
        ({"manifest": "nowhere"}, (400, 13)),
    ],
)
def test_what_cannot_work_is_refused_and_not_queued(
    view: View, body: dict[str, Any], error: tuple[int, int]
) -> None:
    whole = {"cluster": view.cluster} | body
    for operation in ("refresh", "explain"):
        answer = view.ask(operation, whole)
        assert code(answer) == error, answer.text
    assert view.server.post("/v1/jobs/list", {"target": view.id}).json()["jobs"] == []


def test_a_wrong_mode_is_answered_with_the_right_ones(view: View) -> None:
    for operation in ("refresh", "explain"):
        told = view.ask(operation, {"cluster": view.cluster, "mode": "sometimes"}).text
        assert "mode is one of auto, incremental, full" in told


def test_only_what_can_be_followed_is_refreshed_incrementally_on_demand(view: View) -> None:
    query = "SELECT t.id, u.text FROM t JOIN u ON t.id < u.id"
    server, namespace = view.server, view.namespace
    send(server, f"/v1/table/{namespace}$u/create", TEXTS).raise_for_status()
    ask_create(server, f"{namespace}$j", source_query=query).raise_for_status()
    joined = View(server, view.source, f"{namespace}$j", view.cluster)
    answer = joined.ask("refresh", {"mode": "incremental"})
    assert code(answer) == (400, 13)
    assert "incrementally" in answer.json()["error"]
    assert code(joined.ask("refresh", {"src_version": 1})) == (400, 13)
    joined.request()
    names = [source["table"] for source in joined.lease()["spec"]["definition"]["sources"]]
    assert sorted(names) == [[namespace, "t"], [namespace, "u"]]


def test_the_same_request_is_queued_once_and_one_refresh_runs_at_a_time(view: View) -> None:
    first = view.request()
    assert view.request() == first
    other = view.request(mode="full")
    assert other != first
    job = view.lease()
    assert job["id"] == first
    assert view.runner.lease() == []
    view.finish(job)
    assert view.lease()["id"] == other


def test_a_refresh_that_has_begun_does_not_stand_for_one_that_is_requested_later(
    view: View,
) -> None:
    first = view.request()
    job = view.lease()
    view.insert()
    later = view.request()
    assert later not in (first, "")
    assert view.request() == later
    view.finish(job)
    assert view.lease()["id"] == later


def test_a_refresh_leaves_its_watermark_for_the_next(view: View) -> None:
    view.refresh()
    told = view.tell()
    assert told["watermark"] == f'{{"{view.source}":1}}'
    assert (told["stale"], "refreshed_at" in told, "pending" in told) == ("false", True, False)
    view.insert()
    told = view.tell()
    assert (told["stale"], told["pending"]) == ("true", f'{{"{view.source}":1}}')
    view.request()
    job = view.lease()
    assert list(job["spec"]["watermark"]["versions"].values()) == [1]
    view.finish(job)
    assert view.tell()["watermark"] == f'{{"{view.source}":{head(view.server, view.source)}}}'


def test_a_result_without_a_watermark_moves_nothing(view: View) -> None:
    view.refresh()
    for watermark in (None, 7, {"versions": {"x": "y"}}, {"digest": "d"}):
        view.request()
        view.finish(view.lease(), watermark=watermark)
    assert view.tell()["watermark"] == f'{{"{view.source}":1}}'


def test_a_refresh_that_fails_or_is_canceled_moves_nothing(view: View) -> None:
    view.request()
    view.runner.finish(view.lease(), "FAILED", error="no").raise_for_status()
    cancel(view.server, view.request()).raise_for_status()
    assert view.tell()["watermark"] == "{}"


def test_a_finished_refresh_tells_what_it_did(view: View) -> None:
    id = view.request()
    view.finish(view.lease(), rows_updated=1, function_calls=0)
    found = describe(view.server, id)
    wanted = {
        "status": "SUCCEEDED",
        "kind": "refresh",
        "target": view.id,
        "mode": "full",
        "reason": "the first refresh",
        "rows_inserted": "2",
        "rows_updated": "1",
        "function_calls": "0",
        "version": "2",
        "source_versions": f'{{"{view.source}":1}}',
    }
    assert {key: found[key] for key in wanted} == wanted
    shown = view.server.post("/v1/jobs/describe", {"job_id": id}).json()
    assert (shown["job_type"], shown["job_state"]) == ("refresh", "DONE")
    names = ("mode", "rows_written", "source_version", "version")
    assert [shown["result"][name] for name in names] == ["rebuild", 3, 1, 2]


def test_a_query_says_how_fresh_its_rows_are(view: View) -> None:
    def fresh() -> tuple[str, str]:
        headers = view.ask_table("query", {"k": 5}).raise_for_status().headers
        return headers["x-penstock-stale"], headers["x-penstock-watermark"]

    assert fresh() == ("true", "{}")
    view.refresh()
    assert fresh() == ("false", f'{{"{view.source}":1}}')
    view.insert()
    assert fresh()[0] == "true"
    plain = view.server.post(f"/v1/table/{view.source}/query", {"k": 5})
    assert "x-penstock-stale" not in plain.headers


def test_a_dropped_column_is_told_at_the_next_request(view: View) -> None:
    path = f"/v1/table/{view.source}/drop_columns?force=true"
    view.server.post(path, {"columns": ["text"]}).raise_for_status()
    assert code(view.ask("refresh")) == (400, 13)


def test_a_refresh_of_a_dropped_view_ends(view: View) -> None:
    waiting = view.request()
    view.ask("drop").raise_for_status()
    assert describe(view.server, waiting)["status"] == "CANCELED"


def test_a_plan_is_explained(view: View) -> None:
    found = view.ask("explain").raise_for_status().json()
    assert (found["mode"], found["estimated_seconds"]) == ("full", None)
    names = ("reason", "rows_to_insert", "rows_to_update", "rows_to_delete", "function_calls")
    assert found.keys() >= {*names, "fragments"}


def test_rows_that_a_function_failed_on_are_no_rows_of_a_plain_view(view: View) -> None:
    view.request()
    job = view.lease()
    assert code(view.runner.report_errors(job, failure(0))) == (400, 13)
    assert view.runner.error_rows(job) == []


def test_what_each_function_of_a_view_failed_on_is_listed_by_its_own_column(
    server: Server, cluster: str
) -> None:
    functions = [make_column_udf(name, "text") for name in ("one", "two")]
    query = {"base": {}, "source_table": "t", "column_udfs": functions}
    made = pa.schema([("id", pa.int64()), ("text", pa.string())])
    for name in ("one", "two"):
        made = made.append(pa.field(name, pa.int64()))
    view = make_view(
        server, cluster, source_query=json.dumps(query), output_schema=encode_schema(made)
    )
    view.request()
    job = view.lease()
    errors = [failure(0, column="one"), failure(0, column="two"), failure(1, column="two")]
    assert view.runner.report_errors(job, *errors).json() == {"recorded": 3}
    assert view.runner.report_errors(job, *errors).json() == {"recorded": 0}

    def listed(column: str) -> list[tuple[int, list[str]]]:
        found = view.ask_table("errors", {"column": column}).raise_for_status().json()
        return sorted((each["row_id"], each["columns"]) for each in found["records"])

    assert listed("one") == [(0, ["one"])]
    assert listed("two") == [(0, ["two"]), (1, ["two"])]
