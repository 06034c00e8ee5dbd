"""A job's commit, tried until it is in or is not to be."""

import time
from collections.abc import Callable
from typing import TypeVar

from penstock.errors import ConcurrentCommit, OutcomeUnknown, PenstockError, Unavailable
from penstock.jobs.engine.attempt import Attempt
from penstock.retries import Growing

MAX_TRIES = 20
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 1.0

T = TypeVar("T")


class NoFit(Exception):
    """What is to be committed does not fit what is there now; another attempt plans anew."""


def commit_until_in(attempt: Attempt, try_commit: Callable[[], T], what: str) -> T:
    """Try a commit until it is in, each time under the fence; returns what the try gave.

    A try looks at what is there first, and so finds a commit that went in although its answer was
    lost. `what` says what others write to.
    """
    pauses, last = Growing(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS), PenstockError()
    for _ in range(MAX_TRIES):
        attempt.fence()
        try:
            return try_commit()
        except NoFit as error:
            raise ConcurrentCommit(f"{what} changed while it was worked on: {error}") from error
        except (ConcurrentCommit, Unavailable, OutcomeUnknown) as error:
            last = error
            time.sleep(pauses.take())
    raise ConcurrentCommit(
        f"the commit failed {MAX_TRIES} times: {last.message}",
        detail=f"try again when fewer write to {what}",
    )
