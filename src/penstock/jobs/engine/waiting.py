"""Tasks of a refresh on Spark, watched by the driver until they end."""

from collections.abc import Callable

from penstock.errors import FunctionFailed, InvalidRequest
from penstock.jobs.engine import checkpoints
from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.refresh.context import Work
from penstock.jobs.spark.tasks import Running, Tasks

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.25
# A worker that hears of a cancel stops at its next batch; one that does not is ended by Spark.
STOP_SECONDS = 3


def wait_for(work: Work, running: Tasks, listen: Callable[[], bool]) -> None:
    """Wait for the end; raises what the tasks say that makes them fail every time.

    `listen` is called on the way, tells whether there was anything new, and may raise.
    """
    try:
        pause = FIRST_POLL_SECONDS
        while not running.wait(pause):
            work.attempt.check()
            pause = FIRST_POLL_SECONDS if listen() else min(MAX_POLL_SECONDS, pause * 1.5)
        failed = running.result()
    except BaseException as error:
        stop(work, running, gently=isinstance(error, JobCanceled | FunctionFailed))
        raise
    listen()
    work.attempt.check()
    for row in failed:
        kind = FunctionFailed if row.is_function else InvalidRequest
        raise kind(row.error, detail=row.detail)


def stop(work: Work, running: Running, *, gently: bool) -> None:
    """End the tasks, so that nothing is written any more when this returns."""
    if gently:
        checkpoints.request_stop(work.place, work.attempt.job, work.attempt.number)
        if running.wait(STOP_SECONDS):
            return
    running.end()
