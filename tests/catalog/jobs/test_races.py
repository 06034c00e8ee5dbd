"""Many at once: no job is leased twice, no request is queued twice, two servers share a queue."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import (
    CLUSTERS,
    Column,
    Runner,
    add_computed,
    describe,
    make_column,
)
from tests.harness.processes import servers
from tests.harness.processes.databases import new_postgres_database

T = TypeVar("T")

LESSEES = 8


def at_once(act: Callable[[int], T], count: int = LESSEES) -> list[T]:
    start = threading.Barrier(count)

    def run(number: int) -> T:
        start.wait()
        return act(number)

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(run, range(count)))


def test_eight_lessees_never_get_one_job_twice(column: Column) -> None:
    columns = {f"c{n}": f"id + {n}" for n in range(24)}
    add_computed(column.server, column.table, **columns).raise_for_status()
    ids = [column.request(column=name) for name in columns]

    def work(number: int) -> list[str]:
        runner = Runner(column.server, column.cluster, f"r{number}")
        found: list[str] = []
        while jobs := runner.lease(free=2, wait_seconds=1):
            found += [job["id"] for job in jobs]
        return found

    leased = [id for found in at_once(work) for id in found]
    assert Counter(leased) == Counter(ids)


def test_of_one_slot_only_one_runs_whoever_leases(column: Column) -> None:
    ids = [column.request(where=f"id = {n}") for n in range(6)]
    running: Counter[int] = Counter()
    order: list[str] = []
    lock = threading.Lock()

    def work(number: int) -> None:
        runner = Runner(column.server, column.cluster, f"r{number}")
        while jobs := runner.lease(free=3, wait_seconds=2):
            with lock:
                order.extend(job["id"] for job in jobs)
                running[0] += len(jobs)
                assert running[0] == 1
            time.sleep(0.02)
            with lock:
                running[0] -= 1
            runner.finish(jobs[0]).raise_for_status()

    at_once(work)
    assert order == ids


def test_the_same_request_at_the_same_time_is_one_job(column: Column) -> None:
    assert len(set(at_once(lambda _: column.request()))) == 1
    assert len(set(at_once(lambda n: column.request(where=f"id = {n}")))) == LESSEES


def test_of_many_ends_of_an_attempt_one_counts(column: Column) -> None:
    id = column.request()
    (job,) = column.runner.lease()
    states = ("SUCCEEDED", "FAILED", "CANCELED", "SUCCEEDED")
    answers = at_once(lambda n: column.runner.finish(job, states[n % 4]))
    won = describe(column.server, id)["status"]
    for n, answer in enumerate(answers):
        if states[n % 4] == won:
            assert answer.json() == {"state": won}
        else:
            assert code(answer) == (409, 14)


@pytest.mark.slow
def test_two_servers_share_a_queue(postgres: str, tmp_path: Path) -> None:
    url = new_postgres_database(postgres)
    environ = {"PENSTOCK__CLUSTERS": json.dumps(CLUSTERS)}
    with (
        servers.running(tmp_path, database=url, environ=environ) as first,
        servers.running(tmp_path, database=url, environ=environ) as second,
    ):
        column = make_column(first, "c0")
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(Runner(second, "c0").lease, 1, 20)
            second.wait_for_requests(1)
            id = column.request()
            (job,) = waiting.result()
        assert job["id"] == id
        # Any server takes the report, and every server tells it.
        Runner(first).report(job, progress={"rows_done": 1}).raise_for_status()
        assert describe(second, id)["rows_done"] == "1"
        assert Runner(first).finish(job).json() == {"state": "SUCCEEDED"}
        assert column.request() != id
