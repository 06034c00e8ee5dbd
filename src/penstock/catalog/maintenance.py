"""Maintenance: finish interrupted commits, remove dropped files, delete old records."""

import asyncio
import logging
import time
from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs, ledger
from penstock.catalog.names import dependents, idempotency, removals, tables, transactions
from penstock.catalog.statements import results
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import PenstockError
from penstock.lance.storage import unfinished_files
from penstock.lance.write import uploads
from penstock.model.tables import Table

log = logging.getLogger(__name__)


async def run_for_ever(catalog: Catalog, pause_seconds: float) -> None:
    """Run a round at once and then after each pause; failed work is retried in the next round."""
    if catalog.database.kind == "sqlite":
        await catalog.database.write(removals.release_claims)
    while True:
        try:
            await run_round(catalog)
        except PenstockError as error:
            log.warning("maintenance stopped early: %s", error.message)
        except Exception:
            # A bug: log it in full, but keep going.
            log.exception("maintenance failed")
        await asyncio.sleep(pause_seconds)


async def run_round(catalog: Catalog) -> None:
    """Run one round of all maintenance."""
    # Young ones belong to commits in flight, which the next flush settles.
    await catalog.settler.flush()
    for table, branch in await catalog.database.read(_list_unfinished):
        await _reconcile(catalog, table, branch)
    for key, (table, due) in list(catalog.visits.items()):
        if time.monotonic() >= due:
            del catalog.visits[key]
            await _reconcile(catalog, table, key[1])
    await removals.carry_out(catalog, await catalog.database.read(removals.list_pending))
    await transactions.purge(catalog)
    await idempotency.purge(catalog)
    await jobs.purge(catalog)
    await ledger.purge(catalog)
    await results.sweep(catalog)


async def finish_commits(catalog: Catalog, transaction_ids: Sequence[str]) -> None:
    """Finish or withdraw what a crash left of these commits."""
    for id in transaction_ids:
        for table, branch in await catalog.database.read(_list_unfinished, id):
            await reconcile.reconcile(catalog, table, branch)


async def _reconcile(catalog: Catalog, table: Table, branch: str) -> None:
    try:
        await reconcile.reconcile(catalog, table, branch)
        stale = (time.time() - catalog.staged_seconds) * 1000
        await catalog.lake.run(uploads.sweep, catalog.lake.place(table.location), int(stale))
        await dependents.sweep_tags(catalog, table)
        await _sweep_unfinished(catalog, table, branch)
    except PenstockError as error:
        catalog.visit_later(table, branch)
        log.warning("will try again to reconcile table %s: %s", table, error.message)


async def _sweep_unfinished(catalog: Catalog, table: Table, branch: str) -> None:
    """Remove unfinished files of killed writers, once nobody can own them."""
    # A worker may compute for days before it writes anything.
    is_left = await catalog.database.read(jobs.is_worked_on, table.id)
    if not is_left:
        before = int((time.time() - unfinished_files.UNFINISHED_SECONDS) * 1000)
        place = catalog.lake.place(table.location)
        is_left = await catalog.lake.run(unfinished_files.sweep_unfinished, place, before)
    if is_left:
        catalog.visit_later(table, branch)


async def _list_unfinished(
    tx: Transaction, transaction_id: str | None = None
) -> list[tuple[Table, str]]:
    which = "" if transaction_id is None else "AND v.transaction_id = $1"
    rows = await tx.fetch(
        f"SELECT DISTINCT {tables.COLUMNS}, v.branch FROM table_versions v "
        "JOIN tables t ON t.id = v.table_id JOIN objects o ON o.id = t.id "
        f"WHERE v.settled = 0 {which}",
        *([] if transaction_id is None else [transaction_id]),
    )
    return [(tables.to_table(row[:-1]), row[-1]) for row in rows]
