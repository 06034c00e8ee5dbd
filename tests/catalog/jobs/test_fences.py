"""A runner asks whether a job is still its own, but not twice in a moment."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from penstock.errors import InvalidRequest, LeaseLost, Unavailable
from penstock.jobs.engine.attempt import JobCanceled
from penstock.runner.attempt import RECENT_SECONDS, LeasedAttempt
from penstock.runner.client import Lease, ServerClient
from tests.harness.jobs.fake_runner import Column, cancel

NAMES = ("id", "kind", "attempt", "spec", "cluster", "lease_seconds", "heartbeat_seconds")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class LosesAnAnswer(ServerClient):
    """What the server says to the first publication is not heard, and something happens then."""

    meanwhile: Callable[[], None]
    asked = 0

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        self.asked += 1
        if self.asked > 1:
            super().publish(versions)
            return
        with contextlib.suppress(InvalidRequest):
            super().publish(versions)
        self.meanwhile()
        raise Unavailable("the answer is lost")


def attempt_at(column: Column, clock: Clock, client: ServerClient | None = None) -> LeasedAttempt:
    column.request()
    (job,) = column.runner.lease()
    lease = Lease(**{name: job[name] for name in NAMES})
    return LeasedAttempt(client or ServerClient(column.server.url), lease, clock)


def test_an_answer_stands_for_a_moment(column: Column) -> None:
    clock = Clock()
    attempt = attempt_at(column, clock)
    attempt.fence()
    cancel(column.server, attempt.job).raise_for_status()
    attempt.fence()
    clock.now += RECENT_SECONDS
    with pytest.raises(JobCanceled):
        attempt.fence()
    # What is known is not asked for again, and not forgotten either.
    with pytest.raises(JobCanceled):
        attempt.fence()


def test_a_job_that_is_canceled_is_held_until_it_is_over(column: Column) -> None:
    clock = Clock()
    attempt = attempt_at(column, clock)
    cancel(column.server, attempt.job).raise_for_status()
    with pytest.raises(JobCanceled):
        attempt.fence()
    for seconds in (0.0, RECENT_SECONDS):
        clock.now += seconds
        assert attempt.is_held(lambda: True)
    column.runner.finish({"id": attempt.job, "attempt": 1}, "CANCELED").raise_for_status()
    clock.now += RECENT_SECONDS
    assert not attempt.is_held(lambda: True)
    assert not attempt.is_held(lambda: True)


def test_the_first_fence_asks(column: Column) -> None:
    attempt = attempt_at(column, Clock())
    column.runner.finish({"id": attempt.job, "attempt": 1}, "SUCCEEDED").raise_for_status()
    with pytest.raises(LeaseLost):
        attempt.fence()
    assert not attempt.is_held(lambda: True)


def test_a_loss_that_is_known_is_not_forgotten_for_a_moment(column: Column) -> None:
    attempt = attempt_at(column, Clock())
    attempt.fence()
    column.runner.finish({"id": attempt.job, "attempt": 1}, "SUCCEEDED").raise_for_status()
    with pytest.raises(LeaseLost):
        attempt.error_rows()
    assert not attempt.is_held(lambda: True)


def test_of_a_short_lease_an_answer_stands_shorter(column: Column) -> None:
    clock = Clock()
    attempt = attempt_at(column, clock)
    attempt.lease = structs.replace(attempt.lease, lease_seconds=1)
    assert attempt.is_held(lambda: True)
    column.runner.finish({"id": attempt.job, "attempt": 1}, "SUCCEEDED").raise_for_status()
    assert attempt.is_held(lambda: True)
    clock.now += 0.05
    assert not attempt.is_held(lambda: True)


def test_a_publication_that_was_sent_is_asked_for_until_there_is_an_answer(column: Column) -> None:
    client = LosesAnAnswer(column.server.url)
    attempt = attempt_at(column, Clock(), client)

    def cancel_it() -> None:
        cancel(column.server, attempt.job).raise_for_status()
        with pytest.raises(JobCanceled):
            attempt.fence()

    client.meanwhile = cancel_it
    missing = {"id": column.table.split("$"), "version": 9, "manifest_path": "x"}
    with pytest.raises(InvalidRequest):
        attempt.publish([missing])
    assert client.asked == 2
    # What is not sent yet is not sent any more.
    with pytest.raises(JobCanceled):
        attempt.publish([missing])
    assert client.asked == 2


def test_whoever_lost_the_job_asks_for_no_publication_again(column: Column) -> None:
    client = LosesAnAnswer(column.server.url)
    attempt = attempt_at(column, Clock(), client)

    def lose() -> None:
        column.runner.finish({"id": attempt.job, "attempt": 1}, "SUCCEEDED").raise_for_status()
        with pytest.raises(LeaseLost):
            attempt.fence()

    client.meanwhile = lose
    with pytest.raises(LeaseLost):
        attempt.publish([])
    assert client.asked == 1
