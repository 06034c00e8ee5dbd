"""Requests to fill a column: what is checked before they are queued, and what a runner gets."""

from typing import Any

import pytest

from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import TEXTS, Column, add_computed, describe, make_column
from tests.harness.processes.servers import Server

OPTIONS = {
    "where": "id > 1",
    "read_version": 1,
    "num_frags": 2,
    "task_size": 100,
    "concurrency": 3,
    "commit_granularity": 4,
    "force": True,
}


def test_the_spec_says_all_that_a_runner_needs(column: Column) -> None:
    column.request(**OPTIONS)
    (job,) = column.runner.lease()
    spec = job["spec"]
    assert spec["table"] == column.table.split("$")
    assert (spec["column"], spec["branch"]) == ("len", "")
    assert (spec["expression"], spec["inputs"]) == ("length(text)", ["text"])
    assert spec["data_type"] == {"type": "int32"}
    assert {key: spec[key] for key in OPTIONS} == OPTIONS
    assert spec["watermark"] is None
    assert job["manifest"] is None


def test_without_options_they_are_null(column: Column) -> None:
    column.request()
    (job,) = column.runner.lease()
    nothing = dict.fromkeys(OPTIONS) | {"force": False}
    assert {key: job["spec"][key] for key in OPTIONS} == nothing


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"column": "nope"}, (404, 12)),
        ({"column": "text"}, (400, 13)),
        ({"column": ""}, (400, 13)),
        ({"where": "nope = 1"}, (404, 12)),
        ({"where": "text >"}, (400, 13)),
        ({"where": "text"}, (400, 13)),
        ({"where": "id = 1 OR " * 6000 + "true"}, (400, 13)),
        ({"num_frags": 0}, (400, 13)),
        ({"num_frags": -1}, (400, 13)),
        ({"num_frags": "two"}, (400, 13)),
        ({"task_size": -1}, (400, 13)),
        ({"concurrency": 0}, (400, 13)),
        ({"commit_granularity": 0}, (400, 13)),
        ({"read_version": 99}, (404, 11)),
        ({"read_version": -1}, (400, 13)),
        ({"branch": "none"}, (404, 22)),
        ({"branch": "../x"}, (400, 13)),
        ({"cluster": "nowhere"}, (400, 13)),
        ({"cluster": ""}, (400, 13)),
        ({"force": "yes"}, (400, 13)),
    ],
)
def test_what_cannot_work_is_refused_and_not_queued(
    column: Column, body: dict[str, Any], error: tuple[int, int]
) -> None:
    answer = column.ask_backfill(**body)
    assert code(answer) == error, answer.text
    whole = {"column": "len", "cluster": column.cluster} | body
    assert code(column.ask("explain_backfill", whole)) == error
    assert column.server.post("/v1/jobs/list", {"target": column.table}).json()["jobs"] == []


def test_an_unknown_cluster_names_the_known_ones(column: Column) -> None:
    answer = column.ask_backfill(cluster="nowhere").json()
    assert "'nowhere'" in answer["error"]
    assert "local" in answer["detail"]
    assert column.cluster in answer["detail"]


def test_a_table_that_is_not_there_is_said(column: Column) -> None:
    body = {"column": "len"}
    for operation in ("backfill_column", "explain_backfill"):
        path = f"/v1/table/{column.table}x/{operation}"
        assert code(column.server.post(path, body)) == (404, 4)


def test_what_other_clients_send_along_is_taken(column: Column) -> None:
    column.request(
        intra_applier_concurrency=1,
        min_checkpoint_size=1,
        max_checkpoint_size=10,
        checkpoint_size=5,
        batch_checkpoint_flush_interval_seconds=1.5,
        skip_frags=3,
        task_size=0,
        where="",
    )


def test_a_success_moves_the_watermark(column: Column) -> None:
    column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, result={"version": 5, "watermark": {"version": 5}}).raise_for_status()
    column.request()
    (job,) = column.runner.lease()
    assert job["spec"]["watermark"]["version"] == 5
    column.runner.finish(job, result={"version": 9, "watermark": {"version": 8}})
    column.request()
    assert column.runner.lease()[0]["spec"]["watermark"]["version"] == 8


@pytest.mark.parametrize("partial", [{"where": "id = 1"}, {"num_frags": 1}])
def test_a_part_does_not_move_the_watermark(column: Column, partial: dict[str, Any]) -> None:
    column.request(**partial)
    (job,) = column.runner.lease()
    column.runner.finish(job, result={"version": 5, "watermark": None}).raise_for_status()
    column.request()
    assert column.runner.lease()[0]["spec"]["watermark"] is None


@pytest.mark.parametrize("state", ["FAILED", "CANCELED"])
def test_no_success_does_not_move_the_watermark(column: Column, state: str) -> None:
    column.request()
    (job,) = column.runner.lease()
    column.runner.finish(
        job, state, result={"version": 5, "watermark": {"version": 5}}
    ).raise_for_status()
    column.request()
    assert column.runner.lease()[0]["spec"]["watermark"] is None


def test_a_watermark_is_what_it_is_when_the_job_begins(column: Column) -> None:
    column.request()
    column.request(force=True)
    (job,) = column.runner.lease()
    column.runner.finish(job, result={"version": 5, "watermark": {"version": 5}}).raise_for_status()
    (behind,) = column.runner.lease()
    assert behind["spec"]["watermark"]["version"] == 5


def test_a_watermark_goes_with_a_rename_and_ends_with_a_drop(column: Column) -> None:
    column.request()
    (job,) = column.runner.lease()
    column.runner.finish(job, result={"version": 5, "watermark": {"version": 5}}).raise_for_status()
    rename = {"alterations": [{"path": "len", "rename": "length"}]}
    column.ask("alter_columns", rename).raise_for_status()
    column.request(column="length")
    (job,) = column.runner.lease()
    assert job["spec"]["watermark"]["version"] == 5
    column.runner.finish(job, "CANCELED").raise_for_status()
    column.ask("drop_columns", {"columns": ["length"]}).raise_for_status()
    add_computed(column.server, column.table, length="length(text)").raise_for_status()
    column.request(column="length")
    assert column.runner.lease()[0]["spec"]["watermark"] is None


def test_a_renamed_table_is_found_under_its_new_name(column: Column) -> None:
    column.request()
    column.ask("rename", {"new_table_name": "renamed"}).raise_for_status()
    (job,) = column.runner.lease()
    assert job["spec"]["table"] == [column.table.split("$")[0], "renamed"]


def test_a_branch_has_its_own_slot(column: Column) -> None:
    column.ask("branches/create", {"name": "dev"}).raise_for_status()
    ids = [column.request(), column.request(branch="dev")]
    jobs = column.runner.lease(free=5)
    assert [job["id"] for job in jobs] == ids
    assert [job["spec"]["branch"] for job in jobs] == ["", "dev"]


def test_a_plan_is_explained_and_nothing_is_queued(column: Column) -> None:
    plan = column.ask("explain_backfill", {"column": "len"}).raise_for_status().json()
    assert plan["mode"] == "full"
    assert plan["reason"]
    assert (plan["rows_to_insert"], plan["rows_to_update"], plan["rows_to_delete"]) == (0, 3, 0)
    assert (plan["function_calls"], plan["fragments"]) == (3, 1)
    assert plan["estimated_seconds"] is None
    assert column.server.post("/v1/jobs/list", {"target": column.table}).json()["jobs"] == []


def test_a_plan_follows_the_options(column: Column) -> None:
    send(column.server, f"/v1/table/{column.table}/insert", TEXTS).raise_for_status()

    def rows(**options: Any) -> int:
        body = {"column": "len"} | options
        plan = column.ask("explain_backfill", body).raise_for_status().json()
        return int(plan["rows_to_update"])

    assert rows() == 6
    assert rows(where="id = 1") == 2
    assert rows(num_frags=1) == 3
    assert rows(read_version=2) == 3


def test_a_table_dropped_while_its_job_waits_gives_no_work(server: Server, cluster: str) -> None:
    column = make_column(server, cluster)
    id = column.request()
    column.ask("deregister").raise_for_status()
    assert column.runner.lease() == []
    assert describe(server, id)["status"] == "CANCELED"
