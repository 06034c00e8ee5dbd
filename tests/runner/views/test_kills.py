"""Whatever is killed while a view is refreshed, the view ends right, and no call is made twice."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness.jobs.fake_runner import Runner, cancel
from tests.harness.processes.runners import RunnerProcess, Team, wait
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import (
    RunnerView,
    Source,
    make_source,
    make_view,
    make_words,
    words_of,
)
from tests.runner.views.test_sql_views import GROUPS, grouped

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COLUMNS = ("id", "title", "__child_index", "word")


def slowly(text: str) -> Any:
    import time

    time.sleep(0.05)
    return [{"word": word} for word in text.split(" ")]


def made_by(view: RunnerView) -> list[str]:
    return view.log.read_text().splitlines() if view.log.exists() else []


def ends_right(source: Source, view: RunnerView, job: str) -> dict[str, Any]:
    found = view.finish(job, 300)
    assert found["status"] == "SUCCEEDED", found
    assert view.show(*COLUMNS) == words_of(source)
    assert len(view.commits(job)) == 1
    until(lambda: not view.loose_files(), f"{view.loose_files()} was never removed")
    return found


def test_a_killed_runner_is_followed_by_another(
    server: Server, team: Team, pair: list[RunnerProcess], tmp_path: Path
) -> None:
    source = make_source(server, range(160), fragments=6)
    view = make_words(source, tmp_path / "calls", slowly)
    job = view.request(checkpoint_size=10, concurrency=2)
    wait(server, job, lambda found: found["status"] == "RUNNING")
    until(lambda: len(made_by(view)) > 70)
    team.holder(job).kill()
    found = ends_right(source, view, job)
    calls = view.take_calls()
    assert int(found["attempt"]) >= 2
    # Only what was under way is done again: one batch of each task.
    assert 160 <= len(calls) <= 160 + 2 * 10
    assert len(set(calls)) == 160


def test_what_a_canceled_refresh_made_serves_the_next_one(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    source = make_source(server, range(160), fragments=6)
    view = make_words(source, tmp_path / "calls", slowly)
    job = view.request(checkpoint_size=10, concurrency=2)
    until(lambda: len(made_by(view)) > 70)
    assert cancel(server, job).status_code == 200
    assert view.finish(job)["status"] == "CANCELED"
    source.update("title", "'other'", "id < 20")
    source.compact()
    again = view.request(checkpoint_size=10)
    ends_right(source, view, again)
    assert 160 <= len(view.take_calls()) <= 160 + 2 * 10


@pytest.mark.parametrize(
    ("point", "first"),
    [("files written", True), ("refresh committed", False)],
)
def test_a_runner_killed_at_a_bad_moment_is_followed_by_another(
    server: Server, team: Team, runner: RunnerProcess, tmp_path: Path, point: str, first: bool
) -> None:
    source = make_source(server, range(30))
    view = make_words(source, tmp_path / "calls")
    calls = 30
    if not first:
        view.refresh()
        view.take_calls()
        source.update("text", "'a b'", "id IN (3, 20)")
        calls = 2
    with team.asleep():
        doomed = team.start(PENSTOCK_CRASH_AT=point).wait_until_warm()
        job = view.request()
        assert doomed.process.wait(180) == -signal.SIGKILL
        pinned = words_of(source)
        # What comes now is for the next refresh.
        source.append(30)
    found = view.finish(job, 300)
    assert found["status"] == "SUCCEEDED", found
    assert view.show(*COLUMNS) == pinned
    assert len(view.commits(job)) == 1
    assert len(view.take_calls()) == calls
    assert view.refresh()["function_calls"] == "1"
    assert view.show(*COLUMNS) == words_of(source)
    until(lambda: not view.loose_files(), "files of the killed attempt stay")


def test_a_runner_that_gets_a_job_too_late_leaves_it_to_the_next_attempt(
    server: Server, team: Team, tmp_path: Path
) -> None:
    late, other = team.at_least(1)[0], Runner(server, "local", "other")
    view = make_words(make_source(server, range(30)), tmp_path / "calls")
    with team.asleep():
        # The server answers what the runner had asked before, and nobody reads that.
        job = view.request()
        wait(server, job, lambda found: found["status"] == "RUNNING")
        (again,) = until(other.lease)
        assert (again["id"], again["attempt"]) == (job, 2)
    late.wait_for(f"job {job}: attempt 1 lost its lease")
    assert made_by(view) == []
    other.finish(again, "QUEUED", retryable=True).raise_for_status()
    assert view.finish(job)["status"] == "SUCCEEDED"
    assert len(view.take_calls()) == 30


@pytest.mark.parametrize("point", ["refresh committed"])
def test_what_spark_sql_wrote_for_a_killed_runner_counts_once_or_not_at_all(
    server: Server, team: Team, runner: RunnerProcess, point: str
) -> None:
    source = make_source(server, range(30))
    view = make_view(source, GROUPS)
    view.refresh()
    source.update("kind", "'k0'", "id IN (4, 5)")
    with team.asleep():
        doomed = team.start(PENSTOCK_CRASH_AT=point).wait_until_warm()
        job = view.request(verify=True)
        assert doomed.process.wait(180) == -signal.SIGKILL
    found = view.finish(job, 300)
    assert found["status"] == "SUCCEEDED", found
    assert view.show("kind", "n", "total", "last") == grouped(source)
    assert len(view.commits(job)) == 1
    assert json.loads(found["certificate"])["is_equal"]
    until(lambda: not view.loose_files(), "files of the killed attempt stay")
