"""A commit that others are in the way of is tried again, as long as the job is held."""

import pytest

from penstock.errors import (
    ConcurrentCommit,
    InvalidRequest,
    LeaseLost,
    OutcomeUnknown,
    PenstockError,
    Unavailable,
)
from penstock.jobs.engine import committing
from penstock.jobs.engine.committing import NoFit, commit_until_in
from tests.harness.jobs.held_attempt import HeldAttempt


def test_what_passes_is_tried_again_each_time_with_a_look_at_the_lease() -> None:
    fences: list[int] = []
    problems: list[PenstockError] = [Unavailable(), OutcomeUnknown(), ConcurrentCommit()]

    def commit() -> int:
        if problems:
            raise problems.pop()
        return 7

    assert commit_until_in(HeldAttempt(on_fence=lambda: fences.append(1)), commit, "the table") == 7
    assert len(fences) == 4


def test_what_does_not_pass_is_raised_at_once() -> None:
    calls: list[int] = []

    def commit() -> None:
        calls.append(1)
        raise InvalidRequest("no")

    with pytest.raises(InvalidRequest):
        commit_until_in(HeldAttempt(), commit, "the table")
    assert len(calls) == 1


def test_what_does_not_fit_is_left_to_another_attempt() -> None:
    calls: list[int] = []

    def commit() -> None:
        calls.append(1)
        raise NoFit("column a was altered")

    with pytest.raises(ConcurrentCommit, match=r"the view changed .* column a was altered"):
        commit_until_in(HeldAttempt(), commit, "the view")
    assert len(calls) == 1


def test_a_job_that_is_lost_meanwhile_commits_nothing() -> None:
    def lose() -> None:
        raise LeaseLost()

    with pytest.raises(LeaseLost):
        commit_until_in(HeldAttempt(on_fence=lose), pytest.fail, "the view")


@pytest.mark.slow
def test_the_last_error_is_told_when_it_is_given_up() -> None:
    calls: list[int] = []

    def commit() -> None:
        calls.append(1)
        raise ConcurrentCommit("version 3 is taken")

    with pytest.raises(ConcurrentCommit, match="failed 20 times: version 3 is taken") as told:
        commit_until_in(HeldAttempt(), commit, "the view")
    assert len(calls) == committing.MAX_TRIES
    assert "the view" in told.value.detail
