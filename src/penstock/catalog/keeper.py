"""The keeper of the queue: each second it looks for what nobody tells this server."""

import asyncio
import logging

from penstock.catalog import leases
from penstock.catalog.catalog import Catalog
from penstock.errors import PenstockError

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0


async def run_for_ever(catalog: Catalog) -> None:
    """Look for leases that expired, and for jobs that other servers queued or that may go on."""
    clock = asyncio.get_running_loop().time
    # While no server was there to report to, a runner may have seemed silent.
    grace = clock() + catalog.queue.lease_seconds
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            if clock() >= grace:
                await leases.expire(catalog)
            if catalog.queue.is_awaited and await leases.has_ready(catalog):
                catalog.queue.ring()
        except PenstockError as error:
            log.warning("the look at the queue failed: %s", error.message)
        except Exception:
            # A bug, told in full; but it must not end all later looks.
            log.exception("the look at the queue failed")
