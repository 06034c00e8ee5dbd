"""A job's changes as server-sent events, and its log."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import Column, cancel, make_column
from tests.harness.processes import servers
from tests.harness.processes.servers import Server


def follow(server: Server, id: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a job as they come, as a browser would read them."""
    with httpx.stream("GET", f"{server.url}/v1/jobs/{id}/events", timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


def test_every_change_is_told_until_the_end(column: Column) -> None:
    id = column.request()
    events = follow(column.server, id)
    assert next(events)[1]["status"] == "QUEUED"
    (job,) = column.runner.lease()
    assert next(events)[1]["status"] == "RUNNING"
    took = []
    for done in range(10):
        reported = time.monotonic()
        column.runner.report(job, progress={"rows_done": done}).raise_for_status()
        name, told = next(events)
        assert (name, told["properties"]["rows_done"]) == ("progress", str(done))
        took.append(time.monotonic() - reported)
    # At once, and not at the look that comes each second.
    assert min(took) < 0.8
    column.runner.finish(job, result={"version": 5}).raise_for_status()
    rest = list(events)
    assert [name for name, _ in rest] == ["progress", "end"]
    assert rest[-1][1]["status"] == "SUCCEEDED"
    assert rest[-1][1]["properties"]["version"] == "5"


def test_a_cancel_is_told(column: Column) -> None:
    id = column.request()
    events = follow(column.server, id)
    next(events)
    cancel(column.server, id).raise_for_status()
    assert [told["status"] for _, told in events] == ["CANCELED", "CANCELED"]


def test_a_finished_job_is_told_and_that_is_all(column: Column) -> None:
    id = column.request()
    cancel(column.server, id).raise_for_status()
    assert [name for name, _ in follow(column.server, id)] == ["progress", "end"]


def test_an_unknown_job_has_no_events_and_no_log(server: Server) -> None:
    assert code(server.get("/v1/jobs/none/events")) == (404, 10)
    assert code(server.get("/v1/jobs/none/logs")) == (404, 10)
    assert code(server.get("/v1/jobs/$/logs")) == (400, 13)


@pytest.mark.slow
def test_silence_is_filled_with_comments(column: Column) -> None:
    id = column.request()
    with httpx.stream("GET", f"{column.server.url}/v1/jobs/{id}/events", timeout=30) as answer:
        lines = (line for line in answer.iter_lines() if line.startswith(":"))
        assert next(lines) == ": still here"


def test_who_follows_or_waits_does_not_delay_a_stop(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        column = make_column(server, "local")
        id = column.request()
        (job,) = column.runner.lease()
        with ThreadPoolExecutor(2) as threads:
            following = threads.submit(lambda: list(follow(server, id)))
            waiting = threads.submit(column.runner.lease, 1, 30)
            server.wait_for_requests(2)
            started = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - started < 20
            assert [told["status"] for _, told in following.result()] == ["RUNNING"]
            assert waiting.result() == []
        assert job["attempt"] == 1


def test_a_log_is_read_in_pages(column: Column) -> None:
    column.request()
    (job,) = column.runner.lease()
    lines = [{"at": 5 + n, "level": "info", "text": f"line {n}"} for n in range(5)]
    column.runner.report(job, logs=lines[:3]).raise_for_status()
    column.runner.finish(job, logs=[*lines[3:], {"text": "a\0b" + "x" * 9000}]).raise_for_status()
    path, found, token = f"/v1/jobs/{job['id']}/logs", [], ""
    while True:
        params = {"limit": 2} | ({"page_token": token} if token else {})
        page = column.server.get(path, **params).raise_for_status().json()
        found += page["lines"]
        if not (token := page.get("page_token", "")):
            break
    assert [line["text"] for line in found[:5]] == [line["text"] for line in lines]
    assert (found[0]["at"], found[0]["level"], found[0]["attempt"]) == (5, "info", 1)
    assert found[5]["text"].startswith("a\ufffdb")
    assert len(found[5]["text"]) == 8000


def test_a_long_log_keeps_its_end(column: Column) -> None:
    column.request()
    (job,) = column.runner.lease()
    for start in range(0, 12_000, 2_000):
        lines = [{"text": str(n)} for n in range(start, start + 2_000)]
        column.runner.report(job, logs=lines).raise_for_status()
    page = column.server.get(f"/v1/jobs/{job['id']}/logs").json()
    assert [line["text"] for line in page["lines"]] == [str(n) for n in range(2_000, 12_000)]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_both_methods_do(column: Column, method: str) -> None:
    id = column.request()
    assert column.server.client.request(method, f"/v1/jobs/{id}/logs").json() == {"lines": []}
