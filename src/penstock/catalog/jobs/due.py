"""When something that follows changes by itself is due: columns that fill themselves, and views.

A commit wakes the look, as does the end of a job; a look now and then finds what other servers
committed, and what happened while no server was there.
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

# The net under the bell; and how long a bell is not answered, so that a burst is one look.
LOOK_SECONDS, BURST_SECONDS = 5.0, 0.2
# How long what failed waits: at least, at most after a change, and at most without.
MIN_FAILED_MILLIS, MAX_CHANGED_MILLIS, MAX_UNCHANGED_MILLIS = 1_000, 60_000, 3_600_000
JOBS_BACK = 10
# What may go well at the next look.
PASSING = (Unavailable, TooManyRequests, ConcurrentCommit)


@dataclass(frozen=True, slots=True)
class Rules:
    """How many changes make a job, and how long it waits after the first, and after another job.

    So many changed rows do as well; 0 when they are not counted.
    """

    changes: int = 1
    cooldown_seconds: float = 5.0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """A job that came to its end, or has not yet."""

    state: str
    created_at: int
    finished_at: int | None
    # The version at which it found nothing to do, if it did.
    fresh_at: int | None = None


class Changed(Protocol):
    """Something with changes that it has not followed yet."""

    @property
    def head(self) -> int: ...

    @property
    def first_change_at(self) -> int: ...

    @property
    def last_change_at(self) -> int: ...

    @property
    def jobs(self) -> tuple[Ended, ...]:
        """The newest first."""


async def run_for_ever(catalog: Catalog, what: str, look: Callable[[], Awaitable[float]]) -> None:
    """Look at once, then whenever something changes or the time that a look returns is over."""
    while not catalog.queue.is_closed:
        bell = catalog.queue.bell(CHANGES)
        pause = LOOK_SECONDS
        try:
            pause = min(pause, await look())
        except PenstockError as error:
            log.warning("the look for %s failed: %s", what, error.message)
        except Exception:
            # A bug, told in full; but it must not end all later looks.
            log.exception("the look for %s failed", what)
        if await wait_for(bell, max(BURST_SECONDS, pause)):
            await asyncio.sleep(BURST_SECONDS)


def plan_due(changed: Changed, rules: Rules) -> int | None:
    """When a job is to be requested; None as long as only something new can tell."""
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
    # Without a cooldown, too, what fails waits.
    first = max(cooldown, MIN_FAILED_MILLIS) if failures else cooldown
    pause = min(first << failures, max(cooldown, most))
    return max(due, last.finished_at + pause)
