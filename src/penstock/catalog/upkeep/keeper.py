"""Keep the tables that have a policy small: one table at a time, and no faster than it may be.

A server claims a table for a run, so that others leave it alone. Nothing rests on the claim:
commits go through the catalog, and removals look at what is needed in their transaction. So a
server that dies in the middle leaves a whole table, and when its claim is over another one goes on.
"""

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.queue import wait_for
from penstock.catalog.names import tables
from penstock.catalog.upkeep import compactions, plans, policies, removals
from penstock.catalog.upkeep.plans import Retention
from penstock.catalog.upkeep.policies import BELL, READER_SECONDS, Policy, Run, encode
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import PenstockError
from penstock.model.tables import Table

log = logging.getLogger(__name__)

# How often to look, and how long the claim of a server counts that has died.
LOOK_SECONDS, CLAIM_SECONDS = 2.0, 900
# What is left is done after so long; a run that failed is repeated after twice as long each time.
AGAIN_SECONDS, MOST_FAILED_SECONDS = 5, 3600


@dataclass(frozen=True, slots=True)
class Rules:
    """How often a table is looked at, and how long a run begins new pieces."""

    interval_seconds: float = 300.0
    work_seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class _Claim:
    table: Table
    policy: Policy
    until: int
    failures: int


async def run_for_ever(catalog: Catalog, rules: Rules) -> None:
    """Run what is due, and rest as long as each run took, so that half of the time is others'."""
    if catalog.database.kind == "sqlite":
        await catalog.database.write(release_claims)
    while not catalog.queue.is_closed:
        bell = catalog.queue.bell(BELL)
        began = time.monotonic()
        try:
            while await run_next(catalog, rules):
                await asyncio.sleep(time.monotonic() - began)
                began = time.monotonic()
        except PenstockError as error:
            log.warning("the upkeep of tables waits: %s", error.message)
        except Exception:
            # A bug: log it in full, but keep going.
            log.exception("the upkeep of tables failed")
        await wait_for(bell, LOOK_SECONDS)


async def run_next(catalog: Catalog, rules: Rules) -> bool:
    """Run the policy that has been due for longest; False when none is due."""
    claim = await catalog.database.write(_claim)
    if claim is None:
        return False
    crash_point("upkeep claimed")
    run, error, is_done = Run(), "", True
    try:
        run, is_done = await _run(catalog, claim, rules.work_seconds)
    except PenstockError as raised:
        error = raised.message
        log.warning("table %s is not kept small: %s", claim.table, error)
    counts = catalog.upkeep_counts
    counts.runs += 1
    counts.failures += bool(error)
    counts.fragments_removed += run.fragments_removed
    counts.versions_removed += run.versions_removed
    counts.bytes_removed += run.bytes_removed
    wait = rules.interval_seconds if is_done else AGAIN_SECONDS
    if error:
        wait = min(MOST_FAILED_SECONDS, rules.interval_seconds * 2 ** min(claim.failures, 10))
    await catalog.database.write(partial(_note, claim=claim, run=run, error=error, wait=wait))
    return True


async def _run(catalog: Catalog, claim: _Claim, seconds: float) -> tuple[Run, bool]:
    """Work on all branches; tells whether nothing is left."""
    table, policy = claim.table, claim.policy
    removed = added = lost = versions = size = 0
    is_done = True
    for branch in await catalog.database.read(_list_branches, table.id):
        # A job that writes files for fragments would have to find their rows elsewhere.
        if policy.compact and not await catalog.database.read(jobs.is_worked_on, table.id):
            done = await compactions.compact(
                catalog,
                table,
                branch,
                seconds,
                deleted_share=policy.deleted_share,
                exclude=partial(
                    plans.choose_excluded,
                    small_fragments=policy.small_fragments,
                    deleted_share=policy.deleted_share,
                ),
            )
            removed, added = removed + done.fragments_removed, added + done.fragments_added
            lost, is_done = lost + done.pieces_lost, is_done and not done.pieces_left
        if policy.removes:
            retention = Retention(
                policy.older_than_seconds or READER_SECONDS, policy.keep_versions or 1
            )
            gone = await removals.remove_old(catalog, table, branch, retention)
            versions, size = versions + gone.versions_removed, size + gone.bytes_removed
            is_done = is_done and not (gone.versions_left and gone.versions_removed)
    run = Run(
        fragments_removed=removed,
        fragments_added=added,
        pieces_lost=lost,
        versions_removed=versions,
        bytes_removed=size,
    )
    return run, is_done


async def _claim(tx: Transaction) -> _Claim | None:
    row = await tx.fetch_one(
        "SELECT table_id FROM upkeep_policies "
        "WHERE due_at <= now_millis() AND claimed_until <= now_millis() "
        "ORDER BY due_at, table_id LIMIT 1"
    )
    if row is None:
        return None
    mine = await tx.fetch_one(
        "UPDATE upkeep_policies SET claimed_until = now_millis() + $2 "
        "WHERE table_id = $1 AND claimed_until <= now_millis() "
        "RETURNING policy, claimed_until, failures",
        *(row[0], CLAIM_SECONDS * 1000),
    )
    table = await tables.find_by_id(tx, row[0])
    if mine is None or table is None:
        return None
    return _Claim(table, policies.decode_policy(mine[0]), mine[1], mine[2])


async def _note(tx: Transaction, claim: _Claim, run: Run, error: str, wait: float) -> None:
    """Record a run, if its claim still counts; a policy that was set meanwhile stays due."""
    await tx.fetch(
        "UPDATE upkeep_policies SET claimed_until = 0, ran_at = now_millis(), result = $3, "
        "error = $4, failures = $5, "
        "due_at = CASE WHEN policy = $6 THEN now_millis() + $7 ELSE due_at END "
        "WHERE table_id = $1 AND claimed_until = $2",
        *(claim.table.id, claim.until, encode(run), error[:1000]),
        *(claim.failures + 1 if error else 0, encode(claim.policy), int(wait * 1000)),
    )


async def release_claims(tx: Transaction) -> None:
    """Release all claims; for the only process that uses a database, at its start."""
    await tx.fetch("UPDATE upkeep_policies SET claimed_until = 0")


async def _list_branches(tx: Transaction, table_id: str) -> list[str]:
    rows = await tx.fetch(
        "SELECT DISTINCT branch FROM table_versions WHERE table_id = $1 ORDER BY branch", table_id
    )
    return [row[0] for row in rows]
