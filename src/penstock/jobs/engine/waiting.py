"""Wait in the driver for work on Spark."""

import contextlib
import time
from collections.abc import Callable
from typing import Any

from penstock.errors import FunctionFailed, InvalidRequest
from penstock.jobs.engine.attempt import Attempt, JobCanceled, JobPaused
from penstock.jobs.engine.checkpoints import StopKind, request_stop
from penstock.jobs.spark.tasks import SparkWork
from penstock.lance.storage.lake import Place
from penstock.retries import Backoff

FIRST_POLL_SECONDS, MAX_POLL_SECONDS = 0.02, 0.25
# How long workers get to stop at their next batch, before Spark kills them.
STOP_SECONDS = 3
# How long a pause waits for the batches that have begun, which take about a second each.
PAUSE_SECONDS = 600


def wait_for_tasks(
    attempt: Attempt, place: Place, tasks: SparkWork, listen: Callable[[], bool] = lambda: False
) -> None:
    """Wait for guarded tasks to end; raises a permanent failure of one of them."""
    for failed in wait_for(attempt, place, tasks, listen):
        kind = FunctionFailed if failed.is_function else InvalidRequest
        raise kind(failed.error, detail=failed.detail)


def wait_for(
    attempt: Attempt,
    place: Place,
    running: SparkWork,
    listen: Callable[[], bool] = lambda: False,
    *,
    patience: float = STOP_SECONDS,
) -> list[Any]:
    """Wait for the end; returns the resulting rows.

    `listen` is called meanwhile and once more afterwards; it returns whether there was anything
    new, and may raise. Workers that are asked to stop get so many seconds for it; with 0, they
    have nothing to keep.
    """
    try:
        try:
            rows = _watch(attempt, running, listen)
        except JobPaused:
            if patience:
                _let_batches_end(attempt, place, running)
            raise
    except BaseException as error:
        # Once this returns, no worker writes any more.
        if isinstance(error, JobCanceled | FunctionFailed):
            request_stop(place, attempt.job, attempt.number)
            if patience and running.wait(patience):
                raise
        running.end()
        raise
    listen()
    attempt.check()
    return rows


def _watch(attempt: Attempt, running: SparkWork, listen: Callable[[], bool]) -> list[Any]:
    polls = Backoff(FIRST_POLL_SECONDS, MAX_POLL_SECONDS, 1.5)
    while not running.wait(polls.take()):
        attempt.check()
        if listen():
            polls.reset()
    return running.result()


def _let_batches_end(attempt: Attempt, place: Place, running: SparkWork) -> None:
    """Wait until workers have kept what they had begun; raises what ends the job meanwhile."""
    request_stop(place, attempt.job, attempt.number, StopKind.AFTER_BATCHES)
    deadline = time.monotonic() + PAUSE_SECONDS
    while not running.wait(MAX_POLL_SECONDS) and time.monotonic() < deadline:
        with contextlib.suppress(JobPaused):
            attempt.check()
