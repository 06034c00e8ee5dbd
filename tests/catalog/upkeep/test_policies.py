"""Policies over HTTP: a server keeps tables small by itself, and tells how it goes."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.catalog.upkeep.test_compactions import ask, grow, insert, read
from tests.harness.clients.idempotency_keys import query
from tests.harness.data.tables import code, get_table, open_by_path
from tests.harness.jobs.fake_runner import make_column
from tests.harness.processes import servers
from tests.harness.processes.databases import EITHER, database_of, sqlite_url
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

# So that a run comes soon after the one before.
QUICK = {"PENSTOCK__UPKEEP__INTERVAL_SECONDS": "1"}
IDLE = {"PENSTOCK__UPKEEP__ENABLED": "false"}
# Where one point is as good as another, but for a long proof.
ANY_POINT = [
    "versions forgotten",
    *(
        pytest.param(point, marks=pytest.mark.slow)
        for point in ("upkeep claimed", "piece compacted", "versions removed")
    ),
]
# Merges any three small fragments.
SMALL = {"small_fragments": 3}


@pytest.fixture(params=EITHER)
def database(request: pytest.FixtureRequest) -> str:
    return database_of(request)


def told(server: Server, table: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(server, table, "upkeep/describe")
    return found


def fragments(server: Server, table: str) -> int:
    return len(open_by_path(server, table).get_fragments())


def age(database: str, data: Path, table: Path) -> None:
    """Let all versions of the catalog be a day old."""
    change = "UPDATE table_versions SET timestamp_millis = timestamp_millis - 86400000"
    query(database or sqlite_url(data), [change])


def test_a_policy_is_set_told_and_ended(database: str, tmp_path: Path) -> None:
    with servers.running(tmp_path, database=database, environ=IDLE) as server:
        table = grow(server, 1)
        assert told(server, table)["policy"] is None
        ask(server, table, "upkeep/set", {"older_than_seconds": 7200, "keep_versions": 5})
        found = told(server, table)
        assert (found["policy"]["compact"], found["policy"]["keep_versions"]) == (True, 5)
        assert (found["ran_at_millis"], found["result"], found["error"]) == (None, None, None)
        shown = ask(server, table, "describe", {"load_detailed_metadata": True})
        assert json.loads(shown["properties"]["penstock.upkeep"]) == found
        for wrong in (
            {"compact": False},
            {"older_than_seconds": 3599},
            {"keep_versions": 0},
            {"small_fragments": 1},
            {"deleted_share": 0},
        ):
            assert code(server.post(f"/v1/table/{table}/upkeep/set", wrong)) == (400, 13)
        assert told(server, table) == found
        ask(server, table, "upkeep/end")
        assert told(server, table)["policy"] is None
        # It goes with its table.
        ask(server, table, "upkeep/set", {"keep_versions": 5})
        ask(server, table, "drop")


def test_a_server_keeps_a_table_small_by_itself(database: str, tmp_path: Path) -> None:
    with servers.running(tmp_path, database=database, environ=QUICK) as server:
        table = grow(server, 6)
        other = grow(server, 6)
        before = read(server, table)
        versions = get_table(server, table).listed()
        ask(server, table, "upkeep/set", {**SMALL, "keep_versions": 1})
        until(lambda: fragments(server, table) <= 2)
        assert read(server, table) == before
        # Whoever reads them has an hour.
        assert set(versions) <= set(get_table(server, table).listed())
        age(database, tmp_path, get_table(server, table).location)
        until(lambda: len(get_table(server, table).listed()) <= 2)
        assert read(server, table) == before
        assert fragments(server, other) == 7
        for n in range(4):
            insert(server, table, 100 + n)
        until(lambda: fragments(server, table) <= 3)
        assert len(read(server, table)) == len(before) + 4
        page = server.client.get("/metrics").text
        assert 'penstock_upkeep_policies{state="ok"} 1.0' in page
        assert 'penstock_upkeep_removed_total{kind="versions"}' in page
        assert told(server, table)["error"] is None


def test_a_table_that_a_job_works_on_is_not_compacted(tmp_path: Path) -> None:
    clusters = {"PENSTOCK__CLUSTERS": '{"c0": {"master": "local[1]"}}'}
    with servers.running(tmp_path, environ=QUICK | clusters) as server:
        column = make_column(server, "c0")
        for n in range(4):
            insert(server, column.table, 20 + n)
        column.request()
        (job,) = column.runner.lease()
        ask(server, column.table, "upkeep/set", SMALL)
        until(lambda: told(server, column.table)["ran_at_millis"] is not None)
        assert fragments(server, column.table) == 5
        column.runner.finish(job, "FAILED", error="x", retryable=False).raise_for_status()
        until(lambda: fragments(server, column.table) <= 2)


def test_a_run_that_fails_is_told_and_comes_later(database: str, tmp_path: Path) -> None:
    with servers.running(tmp_path, database=database, environ=QUICK) as server:
        table = grow(server, 6)
        (tmp_path / "hidden").mkdir()
        location = get_table(server, table).location
        location.rename(tmp_path / "hidden" / "t")
        ask(server, table, "upkeep/set", {**SMALL, "keep_versions": 1})
        until(lambda: told(server, table)["failures"] >= 2)
        assert told(server, table)["error"]
        assert 'penstock_upkeep_policies{state="failing"} 1.0' in server.client.get("/metrics").text
        (tmp_path / "hidden" / "t").rename(location)
        # Setting it again makes it due at once.
        ask(server, table, "upkeep/set", {**SMALL, "keep_versions": 1})
        until(lambda: fragments(server, table) <= 2)
        until(lambda: told(server, table)["failures"] == 0)


@pytest.mark.parametrize("point", ANY_POINT)
def test_a_server_that_dies_in_a_run_loses_nothing(
    database: str, point: str, tmp_path: Path
) -> None:
    with servers.running(tmp_path, database=database, environ=IDLE) as server:
        table = grow(server, 6)
        before = read(server, table)
        ask(server, table, "upkeep/set", {**SMALL, "keep_versions": 1})
        age(database, tmp_path, get_table(server, table).location)
    dying = servers.start(tmp_path, database=database, environ=QUICK | {"PENSTOCK_CRASH_AT": point})
    assert dying.process.wait(60)
    with servers.running(tmp_path, database=database, environ=QUICK) as server:
        assert read(server, table) == before
        # A claim of a dead server ends by itself; tests do not wait for that.
        query(database or sqlite_url(tmp_path), ["UPDATE upkeep_policies SET claimed_until = 0"])
        until(lambda: fragments(server, table) <= 2)
        age(database, tmp_path, get_table(server, table).location)
        ask(server, table, "upkeep/set", {**SMALL, "keep_versions": 1})
        until(lambda: len(get_table(server, table).listed()) <= 2)
        assert read(server, table) == before
        insert(server, table, 99)
        assert len(read(server, table)) == len(before) + 1


def test_requests_are_answered_while_a_table_is_compacted(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ=QUICK) as server:
        table = grow(server, 40)
        ask(server, table, "upkeep/set", SMALL)
        slowest = 0.0
        while fragments(server, table) > 3:
            began = time.monotonic()
            assert server.client.get("/healthz", timeout=httpx.Timeout(20)).is_success
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 5
