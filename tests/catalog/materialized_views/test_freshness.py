"""How far views of views are behind the tables at the bottom of them."""

import json
from typing import Any

import pytest

from tests.catalog.materialized_views.test_cascades import Stack, stack
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.server_views import View, head

__all__ = ["stack"]

ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)


def refresh(view: View) -> None:
    """A refresh that found the view as it is."""
    view.request()
    job = view.lease()
    source = job["spec"]["definition"]["sources"][0]["id"]
    versions = {source: head(view.server, view.source)}
    mark = {"versions": versions, "digest": "d", "view_version": head(view.server, view.id)}
    view.finish(job, watermark=mark)


def refresh_anew(view: View) -> None:
    """A refresh that made another version of the view."""
    new = {"name": f"n{head(view.server, view.id)}", "expression": "1"}
    view.ask_table("add_columns", {"new_columns": [new]}).raise_for_status()
    refresh(view)


def tell(view: View) -> tuple[bool, Any, Any]:
    """Whether it is stale, the versions that its sources have, and those that tables below have."""
    told = view.tell()
    assert ("lag_seconds" in told) is (told["stale"] == "true")
    parts = (json.loads(told.get(key, "null")) for key in ("pending", "through"))
    return (told["stale"] == "true", *parts)


@pytest.fixture
def fresh(stack: Stack) -> Stack:
    """A view of a view of a view of a table, all of them fresh."""
    for view in (stack.low, stack.middle, stack.top):
        refresh(view)
        assert tell(view) == (False, None, None)
    return stack


def test_a_view_of_views_is_stale_through_them(fresh: Stack) -> None:
    low, middle, top, table = fresh.low, fresh.middle, fresh.top, fresh.low.source
    low.insert()
    low.insert()
    assert tell(low) == (True, {table: 2}, None)
    assert tell(middle) == (True, None, {low.id: {table: 2}})
    assert tell(top) == (True, None, {middle.id: {table: 2}})
    answer = top.ask_table("query", {"k": 1, "vector": {}})
    assert answer.headers["x-penstock-stale"] == "true"


def test_the_lag_is_that_of_the_table_whichever_view_was_refreshed(fresh: Stack) -> None:
    low, middle, top, table = fresh.low, fresh.middle, fresh.top, fresh.low.source
    low.insert()
    refresh_anew(low)
    assert tell(low) == (False, None, None)
    assert tell(middle) == (True, {low.id: 1}, {low.id: {table: 1}})
    assert tell(top) == (True, None, {middle.id: {table: 1}})
    refresh_anew(middle)
    assert tell(top) == (True, {middle.id: 1}, {middle.id: {table: 1}})
    refresh(top)
    assert tell(top) == (False, None, None)


@ON_SQLITE
def test_a_refresh_that_found_nothing_makes_those_above_fresh_too(fresh: Stack) -> None:
    fresh.low.insert()
    refresh(fresh.low)
    for view in (fresh.low, fresh.middle, fresh.top):
        assert tell(view) == (False, None, None)


@ON_SQLITE
def test_a_view_is_late_when_the_table_at_the_bottom_is_longer_ahead_than_its_lag(
    fresh: Stack,
) -> None:
    fresh.top.ask("alter", {"target_lag_seconds": 1}).raise_for_status()
    assert "late" not in fresh.top.tell()
    fresh.low.insert()
    until(lambda: fresh.top.tell()["late"] == "true")
    assert float(fresh.top.tell()["lag_seconds"]) > 1
    assert "late" not in fresh.middle.tell()


@ON_SQLITE
def test_a_view_of_one_that_was_never_refreshed_is_stale(stack: Stack) -> None:
    refresh(stack.middle)
    assert tell(stack.middle) == (True, None, {stack.low.id: {stack.low.source: 1}})


@ON_SQLITE
def test_stale_views_are_counted_through_others(server: Server, fresh: Stack) -> None:
    def count() -> float:
        lines = server.get("/metrics").text.splitlines()
        name = 'penstock_views_stale{auto_refresh="false"} '
        return next(float(line.removeprefix(name)) for line in lines if line.startswith(name))

    before = count()
    fresh.low.insert()
    assert count() >= before + 3
