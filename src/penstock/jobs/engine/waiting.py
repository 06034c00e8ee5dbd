"""Work on Spark, watched by the driver until it ends."""

from collections.abc import Callable
from typing import Any

from penstock.errors import FunctionFailed, InvalidRequest
from penstock.jobs.engine import checkpoints
from penstock.jobs.engine.attempt import Attempt, JobCanceled
from penstock.jobs.spark.tasks import Running, Tasks
from penstock.lance.storage.lake import Place
from penstock.retries import Growing

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.25
# A worker that hears of a stop ends at its next batch; one that does not is ended by Spark.
STOP_SECONDS = 3


def wait_for_tasks(
    attempt: Attempt, place: Place, tasks: Tasks, listen: Callable[[], bool] = lambda: False
) -> None:
    """Wait for the end of guarded tasks; raises what makes one of them fail every time."""
    for failed in wait_for(attempt, place, tasks, listen):
        kind = FunctionFailed if failed.is_function else InvalidRequest
        raise kind(failed.error, detail=failed.detail)


def wait_for(
    attempt: Attempt,
    place: Place,
    running: Running,
    listen: Callable[[], bool] = lambda: False,
    *,
    patience: float = STOP_SECONDS,
) -> list[Any]:
    """Wait for the end; returns the rows that came.

    `listen` is called on the way and once more after it, tells whether there was anything new, and
    may raise. Workers that are asked to stop get so many seconds for it.
    """
    try:
        polls = Growing(FIRST_POLL_SECONDS, MAX_POLL_SECONDS, 1.5)
        while not running.wait(polls.take()):
            attempt.check()
            if listen():
                polls.reset()
        rows = running.result()
    except BaseException as error:
        # Nothing is written any more when this is through.
        if isinstance(error, JobCanceled | FunctionFailed):
            checkpoints.request_stop(place, attempt.job, attempt.number)
            if patience and running.wait(patience):
                raise
        running.end()
        raise
    listen()
    attempt.check()
    return rows
