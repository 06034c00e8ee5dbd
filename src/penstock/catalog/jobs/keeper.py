"""Check the queue every second: expire leases, and find jobs that other servers have queued."""

import asyncio
import logging

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import leases
from penstock.errors import PenstockError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# How far the database's clock may drift from ours within one look: slow answers, slewing.
JUMP_MILLIS = 5_000


class ClockMonitor:
    """Notices jumps of the database's clock, by which leases end."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def find_jump(self, seconds: float, millis: int) -> int:
        """The milliseconds by which the clock jumped since the last check; 0 when it did not."""
        last, self._last = self._last, (seconds, millis)
        if last is None:
            return 0
        jump = round((millis - last[1]) - (seconds - last[0]) * 1000)
        return jump if abs(jump) > JUMP_MILLIS else 0


async def run_for_ever(catalog: Catalog) -> None:
    """Expire leases, and wake runners for jobs that other servers queued or that may be retried."""
    clock = asyncio.get_running_loop().time
    # Runners could not report while no server was there, so they must not count as silent.
    grace = clock() + catalog.queue.lease_seconds
    pace = ClockMonitor()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            if jump := pace.find_jump(clock(), await leases.read_clock(catalog)):
                log.warning("the clock jumped by %d s: all leases begin anew", jump // 1000)
                await leases.begin_anew(catalog)
            if clock() >= grace:
                await leases.expire(catalog)
            if catalog.queue.is_awaited and await leases.has_ready(catalog):
                catalog.queue.ring()
        except PenstockError as error:
            log.warning("the look at the queue failed: %s", error.message)
        except Exception:
            # A bug: log it in full, but keep looking.
            log.exception("the look at the queue failed")
