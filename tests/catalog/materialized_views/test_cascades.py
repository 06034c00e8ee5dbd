"""Refreshes of a view with the views that it reads: the job, its slots, what its end records."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.catalog.materialized_views.test_refreshes import failure
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Runner, cancel, describe
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, head, make_view


@dataclass(frozen=True)
class Stack:
    """A view of a table, a view of that, and a view of that."""

    low: View
    middle: View
    top: View

    @property
    def runner(self) -> Runner:
        return self.top.runner


@pytest.fixture
def stack(server: Server, cluster: str) -> Stack:
    low = make_view(server, cluster)
    namespace = low.namespace
    found = [low]
    for name, above in [("m", "v"), ("w", "m")]:
        id = f"{namespace}${name}"
        query = f"SELECT id, text FROM {above} WHERE id > 1"
        answer = ask_create(server, id, source_query=query, cluster=cluster)
        assert answer.status_code == 201, answer.text
        found.append(View(server, found[-1].id, id, cluster))
    return Stack(*found)


def ended(view: View, spec: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What a runner reports of one view."""
    source = spec["definition"]["sources"][0]["id"]
    version = head(view.server, view.source)
    return {
        "view": view.id,
        "version": 2,
        "mode": "full",
        "reason": "r",
        "watermark": {"versions": {source: version}, "digest": "d", "view_version": 2},
    } | more


def test_what_is_read_comes_before_what_reads_it(stack: Stack) -> None:
    stack.top.request(cascade=True, mode="full", concurrency=2)
    job = stack.top.lease()
    spec = job["spec"]
    views = [stack.low, stack.middle]
    assert [each["table"] for each in spec["upstream"]] == [view.id.split("$") for view in views]
    assert (spec["mode"], spec["concurrency"]) == ("full", 2)
    for each in spec["upstream"]:
        assert (each["mode"], each["concurrency"], each["manifest"]) == ("auto", None, None)
    others = {
        stack.low.id: ended(stack.low, spec["upstream"][0]),
        stack.middle.id: ended(stack.middle, spec["upstream"][1]),
    }
    named = {each["table_id"]: others["$".join(each["table"])] for each in spec["upstream"]}
    stack.runner.finish(job, result=ended(stack.top, spec, upstream=named)).raise_for_status()
    for view in (stack.low, stack.middle, stack.top):
        told = view.tell()
        assert json.loads(told["watermark"]) == {view.source: head(view.server, view.source)}
        assert told["stale"] == "false"
    told = json.loads(describe(stack.top.server, job["id"])["upstream"])
    assert told == {view.id: {"version": 2, "mode": "full"} for view in views}


@pytest.mark.parametrize("upstream", [None, 7, {}, {"x": 1}, {"x": {"watermark": 3}}])
def test_a_result_without_the_other_views_moves_only_its_own(stack: Stack, upstream: Any) -> None:
    stack.top.request(cascade=True)
    job = stack.top.lease()
    result = ended(stack.top, job["spec"], upstream=upstream)
    stack.runner.finish(job, result=result).raise_for_status()
    assert stack.low.tell()["watermark"] == "{}"
    assert stack.top.tell()["watermark"] != "{}"


def test_a_cascade_holds_the_slots_of_all_its_views(stack: Stack) -> None:
    stack.low.request()
    first = stack.low.lease()
    cascade = stack.top.request(cascade=True)
    stack.middle.request()
    # It waits for the refresh that runs, and the one that came after it waits for it.
    assert stack.runner.lease() == []
    stack.low.finish(first)
    job = stack.top.lease()
    assert job["id"] == cascade
    stack.low.request()
    second = stack.middle.request(cascade=True)
    assert stack.runner.lease() == []
    stack.runner.finish(job, result=ended(stack.top, job["spec"])).raise_for_status()
    alone = stack.middle.lease()
    assert alone["spec"]["table"] == stack.middle.id.split("$")
    assert stack.low.lease()["spec"]["table"] == stack.low.id.split("$")
    # The second cascade waits for both.
    assert stack.runner.lease() == []
    stack.runner.finish(alone).raise_for_status()
    assert stack.runner.lease() == []
    assert describe(stack.top.server, second)["status"] == "QUEUED"


def test_a_canceled_cascade_holds_nothing(stack: Stack) -> None:
    cancel(stack.top.server, stack.top.request(cascade=True))
    low = stack.low.request()
    assert stack.low.lease()["id"] == low


def test_a_view_of_tables_alone_is_refreshed_as_ever(stack: Stack) -> None:
    id = stack.low.request(cascade=True)
    # It is the same request as one without.
    assert stack.low.request() == id
    assert stack.low.lease()["spec"]["upstream"] == []


def test_dropping_a_view_on_the_way_ends_the_cascade(stack: Stack) -> None:
    id = stack.top.request(cascade=True)
    stack.middle.ask_table("drop", cascade="true").raise_for_status()
    assert describe(stack.top.server, id)["status"] == "CANCELED"
    assert stack.runner.lease() == []


def test_a_cascade_follows_the_newest_versions(stack: Stack) -> None:
    for operation in ("refresh", "explain"):
        answer = stack.top.ask(operation, {"cascade": True, "src_version": 1})
        assert code(answer) == (400, 13)
        assert "src_version" in answer.text
    assert code(stack.top.ask("refresh", {"cascade": "yes"})) == (400, 13)


def test_a_plan_tells_of_the_views_on_the_way(stack: Stack) -> None:
    plan = stack.top.ask("explain", {"cascade": True}).raise_for_status().json()
    assert [plan["mode"], *(each["mode"] for each in plan["upstream"].values())] == ["full"] * 3
    assert list(plan["upstream"]) == [stack.low.id, stack.middle.id]
    assert plan["upstream"][stack.low.id]["function_calls"] == 0
    # What comes from a view that is yet to be refreshed nobody knows.
    assert (plan["rows_to_insert"], plan["function_calls"]) == (None, None)
    assert plan["unknown"]["function_calls"].startswith("what it reads changes in this refresh")
    assert "upstream" not in stack.top.ask("explain").raise_for_status().json()


def test_errors_of_functions_are_booked_for_the_view_that_has_them(stack: Stack) -> None:
    stack.top.request(cascade=True)
    job = stack.top.lease()
    path = f"/v1/runner/job/{job['id']}/errors"
    body = {"attempt": job["attempt"], "errors": [failure(1)], "view": "another"}
    answer = stack.top.server.post(path, body)
    assert code(answer) == (400, 13)
    assert "another" in answer.text
    known = body | {"view": job["spec"]["upstream"][0]["table_id"]}
    # It is found, and has no function.
    assert "calls no function" in stack.top.server.post(path, known).text
