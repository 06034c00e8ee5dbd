"""Retry a job's commit until it succeeds or can't any more."""

import time
from collections.abc import Callable
from typing import TypeVar

from penstock.errors import (
    ConcurrentCommit,
    InvalidTableState,
    OutcomeUnknown,
    PenstockError,
    Unavailable,
)
from penstock.jobs.engine.attempt import Attempt
from penstock.retries import Backoff

MAX_TRIES = 20
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 1.0

T = TypeVar("T")


class NoFit(Exception):
    """The commit does not fit the newest version; another attempt plans again."""


def commit_until_in(attempt: Attempt, try_commit: Callable[[], T], what: str) -> T:
    """Retry a commit until it is in, fencing each time; returns the result of the last try.

    Each try first checks whether an earlier one went in although its answer was lost. `what` names
    what is written to, for the log. Raises InvalidTableState when the server would refuse it again:
    Lance only tells that the outcome is not known.
    """
    pauses, last = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS), PenstockError()
    for _ in range(MAX_TRIES):
        attempt.fence()
        try:
            return try_commit()
        except NoFit as error:
            raise ConcurrentCommit(f"{what} changed while it was worked on: {error}") from error
        except (ConcurrentCommit, Unavailable, OutcomeUnknown) as error:
            if obstacle := attempt.find_obstacle():
                raise InvalidTableState(obstacle) from error
            last = error
            time.sleep(pauses.take())
    raise ConcurrentCommit(
        f"the commit failed {MAX_TRIES} times: {last.message}",
        detail=f"try again when fewer write to {what}",
    )
