"""Decide when columns and views that update themselves need their next job.

The server looks after each commit and each finished job, and every few seconds, to see what other
servers committed and what happened while no server ran.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.queue import CHANGES, wait_for
from penstock.errors import ConcurrentCommit, PenstockError, TooManyRequests, Unavailable
from penstock.model.jobs import CANCELED, FAILED

log = logging.getLogger(__name__)

# How often to check without being told; and how long to wait after a bell, so that a burst of
# commits is checked once.
LOOK_SECONDS, BURST_SECONDS = 5.0, 0.2
# Pause after a failure: the shortest, the longest after a change, the longest without one.
MIN_FAILED_MILLIS, MAX_CHANGED_MILLIS, MAX_UNCHANGED_MILLIS = 1_000, 60_000, 3_600_000
JOBS_BACK = 10
# Errors that may pass by the next check.
PASSING = (Unavailable, TooManyRequests, ConcurrentCommit)


@dataclass(frozen=True, slots=True)
class TriggerRules:
    """How many changes trigger a job, and how long it waits after the first and after another job.

    A number of changed rows triggers it, too; 0 when rows are not counted.
    """

    changes: int = 1
    cooldown_seconds: float = 5.0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class PastJob:
    """An earlier job of the same column or view; it may not have ended yet."""

    state: str
    created_at: int
    finished_at: int | None
    # The version at which it found nothing to do, if it did.
    fresh_at: int | None = None


class Follower(Protocol):
    """A column or view that has not followed all changes yet."""

    @property
    def head(self) -> int: ...

    @property
    def first_change_at(self) -> int: ...

    @property
    def last_change_at(self) -> int: ...

    @property
    def jobs(self) -> tuple[PastJob, ...]:
        """Newest first."""


async def run_for_ever(catalog: Catalog, what: str, look: Callable[[], Awaitable[float]]) -> None:
    """Check at once, then whenever something changes or the time that a check returned is over."""
    while not catalog.queue.is_closed:
        bell = catalog.queue.bell(CHANGES)
        pause = LOOK_SECONDS
        try:
            pause = min(pause, await look())
        except PenstockError as error:
            log.warning("the look for %s failed: %s", what, error.message)
        except Exception:
            # A bug: log it in full, but keep checking.
            log.exception("the look for %s failed", what)
        if await wait_for(bell, max(BURST_SECONDS, pause)):
            await asyncio.sleep(BURST_SECONDS)


def plan_due(changed: Follower, rules: TriggerRules) -> int | None:
    """When to request a job; None when nothing is to be done before something changes."""
    cooldown = int(rules.cooldown_seconds * 1000)
    due = changed.first_change_at + cooldown
    if not changed.jobs:
        return due
    last = changed.jobs[0]
    if last.finished_at is None:
        return None
    if last.fresh_at is not None and last.fresh_at >= changed.head:
        return None
    is_changed = changed.last_change_at > last.created_at
    if last.state == CANCELED and not is_changed:
        return None
    failures = 0
    while failures < len(changed.jobs) and changed.jobs[failures].state == FAILED:
        failures += 1
    most = MAX_CHANGED_MILLIS if is_changed else MAX_UNCHANGED_MILLIS
    # Even without a cooldown, a failed job is not retried at once.
    first = max(cooldown, MIN_FAILED_MILLIS) if failures else cooldown
    pause = min(first << failures, max(cooldown, most))
    return max(due, last.finished_at + pause)
