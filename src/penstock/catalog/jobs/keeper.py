"""The keeper of the queue: each second it looks for what nobody tells this server."""

import asyncio
import logging

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import leases
from penstock.errors import PenstockError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# What the database's clock may differ from ours within one look, by slow answers or by slewing.
JUMP_MILLIS = 5_000


class Pace:
    """Notices when the database's clock, by which leases end, does not go as time does."""

    def __init__(self) -> None:
        self._last: tuple[float, int] | None = None

    def find_jump(self, seconds: float, millis: int) -> int:
        """By how many milliseconds it jumped since the last look, at our and at its time; or 0."""
        last, self._last = self._last, (seconds, millis)
        if last is None:
            return 0
        jump = round((millis - last[1]) - (seconds - last[0]) * 1000)
        return jump if abs(jump) > JUMP_MILLIS else 0


async def run_for_ever(catalog: Catalog) -> None:
    """Look for leases that expired, and for jobs that other servers queued or that may go on."""
    clock = asyncio.get_running_loop().time
    # While no server was there to report to, a runner may have seemed silent.
    grace = clock() + catalog.queue.lease_seconds
    pace = Pace()
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
            # A bug, told in full; but it must not end all later looks.
            log.exception("the look at the queue failed")
