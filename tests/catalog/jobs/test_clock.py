"""A clock that jumps: nobody loses a job by it, and nobody keeps one for hours."""

import time
from pathlib import Path

import pytest

from penstock.catalog.jobs.keeper import ClockMonitor
from tests.catalog.conftest import HASTY
from tests.harness.clients.idempotency_keys import query
from tests.harness.jobs.fake_runner import describe, make_column
from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database
from tests.harness.processes.waiting import until

HOURS = 2 * 3_600_000


def set_clock(database: str, ahead_millis: int) -> None:
    """Let the database's clock be ahead of time."""
    now = f"CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) + {ahead_millis}"
    define = "CREATE OR REPLACE FUNCTION now_millis() RETURNS BIGINT LANGUAGE SQL VOLATILE AS "
    query(database, [f"{define} 'SELECT {now}'"])


def test_only_what_differs_from_the_pace_of_time_is_a_jump() -> None:
    pace = ClockMonitor()
    assert pace.find_jump(10.0, 1_000_000) == 0
    assert pace.find_jump(11.0, 1_001_000) == 0
    # The answer took long, or the clock is being slewed.
    assert pace.find_jump(15.0, 1_003_000) == 0
    assert pace.find_jump(16.0, 1_004_000 + HOURS) == HOURS
    assert pace.find_jump(17.0, 1_005_000 + HOURS) == 0
    assert pace.find_jump(18.0, 1_006_000) == -HOURS


@pytest.mark.slow
def test_leases_outlast_a_clock_that_jumps(tmp_path: Path, postgres: str) -> None:
    database = new_postgres_database(postgres)
    with servers.running(tmp_path, database=database, environ=HASTY) as server:
        column = make_column(server, "c0")
        id = column.request()
        (job,) = column.runner.lease(wait_seconds=20)
        # Past the time after a start in which no lease ends.
        end = time.monotonic() + 4
        while time.monotonic() < end:
            column.runner.report(job).raise_for_status()
            time.sleep(0.5)
        set_clock(database, HOURS)
        server.wait_for_output("the clock jumped by 7")
        column.runner.report(job).raise_for_status()
        set_clock(database, 0)
        server.wait_for_output("the clock jumped by -7")
        # And now the runner is silent: its lease is over in seconds, not hours.
        until(lambda: describe(server, id)["status"] == "QUEUED", "it is never taken away", 20)
