"""Request refreshes of views with a schedule, when it ticks.

Several servers may look at once: the one whose transaction notes that the ticks are done queues the
job. Ticks that nobody saw, because no server ran, make one refresh; a tick while a refresh waits or
runs makes none.
"""

import functools
import logging
from functools import partial

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import due, jobs
from penstock.catalog.jobs.due import LOOK_SECONDS, PASSING
from penstock.catalog.materialized_views import auto_refresh, refreshes
from penstock.catalog.materialized_views.cron import plan_due
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.catalog.names.transactions import SetProperty
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, PenstockError

log = logging.getLogger(__name__)

PROPERTY = "scheduled"


class _NotMine(Exception):
    """Another server saw to the tick, or a refresh waits or runs."""


async def run_for_ever(catalog: Catalog) -> None:
    """Check at once, then whenever a schedule ticks."""
    await due.run_for_ever(catalog, "views with a schedule", lambda: run_look(catalog))


async def run_look(catalog: Catalog) -> float:
    """Request the refreshes that are due; returns the seconds until the next one."""
    views, now = await catalog.database.read(_list_scheduled)
    waits = [LOOK_SECONDS]
    for view in views:
        assert view.schedule is not None
        assert view.schedule_done_until is not None
        try:
            wait = plan_due(view.schedule, view.schedule_done_until, now)
        except InvalidRequest as error:
            # The other views have their schedules all the same.
            _warn_once(f"view {view.table} is not refreshed by its schedule: {error.message}")
            continue
        if wait == 0:
            await _request(catalog, view)
        elif wait is not None:
            waits.append(wait)
    return min(waits)


@functools.lru_cache(maxsize=1024)
def _warn_once(text: str) -> None:
    log.warning(text)


async def _request(catalog: Catalog, view: MaterializedView) -> None:
    if await catalog.database.write(_pass_over, view):
        log.info("view %s is not refreshed by its schedule: a refresh waits or runs", view.table)
        return
    try:
        id = await refreshes.request_refresh(
            catalog, view, RefreshRequest(), claim=partial(_claim, view=view)
        )
    except _NotMine:
        return
    except PASSING as error:
        log.debug("view %s is not refreshed yet: %s", view.table, error)
        return
    except PenstockError as error:
        await catalog.database.write(_note, view)
        log.warning("view %s is not refreshed by its schedule: %s", view.table, error)
        return
    catalog.queue.auto_refreshes += 1
    await jobs.alter(catalog, id, [SetProperty(PROPERTY, "true", "overwrite")])
    log.info("job %s refreshes view %s by its schedule", id, view.table)


async def _list_scheduled(tx: Transaction) -> tuple[list[MaterializedView], int]:
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    return await auto_refresh.list_views(tx, "r.view_id IS NOT NULL"), clock[0]


async def _pass_over(tx: Transaction, view: MaterializedView) -> bool:
    """Note that the ticks are done, if a refresh of the view waits or runs."""
    return bool(await jobs.list_active(tx, view.table.id)) and await _note(tx, view)


async def _claim(tx: Transaction, view: MaterializedView) -> None:
    """Note that the ticks are done, in the transaction that queues the job."""
    if not await _note(tx, view) or await jobs.list_active(tx, view.table.id):
        raise _NotMine


async def _note(tx: Transaction, view: MaterializedView) -> bool:
    """Note that the ticks are done up to now; False when another server did, or it was altered."""
    done = await tx.fetch(
        "UPDATE refresh_schedules SET done_until = now_millis() "
        "WHERE view_id = $1 AND done_until = $2 RETURNING view_id",
        *(view.table.id, view.schedule_done_until),
    )
    return bool(done)
