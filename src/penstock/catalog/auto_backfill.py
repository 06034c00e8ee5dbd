"""Columns that fill themselves: after writes through the catalog, a backfill is requested for them.

A commit wakes the look, as does the end of a job; a look now and then finds what other servers
committed, and what happened while no server was there. Several servers may look at once: the same
request is queued once.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.catalog import columns, jobs, tables
from penstock.catalog.bindings import find_covered
from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import Backfill
from penstock.catalog.queue import CHANGES, wait_for
from penstock.catalog.transactions import SetProperty
from penstock.database.interface import Row, Transaction
from penstock.errors import ConcurrentCommit, PenstockError, TooManyRequests, Unavailable
from penstock.model.jobs import ACTIVE, BACKFILL, CANCELED, FAILED, SUCCEEDED
from penstock.model.tables import Table

log = logging.getLogger(__name__)

# The net under the bell; and how long a bell is not answered, so that a burst is one look.
LOOK_SECONDS, BURST_SECONDS = 5.0, 0.2
# How long a column whose backfill failed waits: at least, at most after a change of the table, and
# at most without.
MIN_FAILED_MILLIS, MAX_CHANGED_MILLIS, MAX_UNCHANGED_MILLIS = 1_000, 60_000, 3_600_000
JOBS_BACK = 10
PROPERTY = "auto_backfill"
# What may go well at the next look.
PASSING = (Unavailable, TooManyRequests, ConcurrentCommit)


@dataclass(frozen=True, slots=True)
class Rules:
    """How many changes make a backfill, and how long it waits after the first, and after a job."""

    changes: int = 1
    cooldown_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A backfill of the column that came to its end, or has not yet."""

    state: str
    created_at: int
    finished_at: int | None
    # The version at which it found every row filled, if it did.
    fresh_at: int | None = None


@dataclass(frozen=True, slots=True)
class Stale:
    """A column that is filled up to a version, with newer ones after it."""

    table: Table
    branch: str
    name: str
    binding: str
    covered: int
    head: int
    first_change_at: int
    last_change_at: int
    # The newest first.
    jobs: tuple[Ended, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.table.id, self.branch, self.binding


@dataclass
class Watch:
    """What one server remembers between two looks."""

    # Requests that were refused, by the version of the table at which that was.
    refused: dict[tuple[str, str, str], int] = field(default_factory=dict)


async def run_for_ever(catalog: Catalog, rules: Rules) -> None:
    """Look at once, then whenever something changes or a column becomes due."""
    watch = Watch()
    while not catalog.queue.is_closed:
        bell = catalog.queue.bell(CHANGES)
        pause = LOOK_SECONDS
        try:
            pause = min(pause, await run_look(catalog, rules, watch))
        except PenstockError as error:
            log.warning("the look for columns to fill failed: %s", error.message)
        except Exception:
            # A bug, told in full; but it must not end all later looks.
            log.exception("the look for columns to fill failed")
        if await wait_for(bell, max(BURST_SECONDS, pause)):
            await asyncio.sleep(BURST_SECONDS)


async def run_look(catalog: Catalog, rules: Rules, watch: Watch) -> float:
    """Request what is due; returns the seconds until something else is."""
    stale, now = await catalog.database.read(_find_stale, rules.changes)
    waits = [LOOK_SECONDS]
    for column in stale:
        due = plan_due(column, rules)
        if due is None or watch.refused.get(column.key) == column.head:
            continue
        if due > now:
            waits.append((due - now) / 1000)
        else:
            await _request(catalog, column, watch)
    return min(waits)


def plan_due(column: Stale, rules: Rules) -> int | None:
    """When a column is to be filled; None as long as only something new can tell."""
    cooldown = int(rules.cooldown_seconds * 1000)
    due = column.first_change_at + cooldown
    if not column.jobs:
        return due
    last = column.jobs[0]
    if last.finished_at is None:
        return None
    if last.fresh_at is not None and last.fresh_at >= column.head:
        return None
    is_changed = column.last_change_at > last.created_at
    if last.state == CANCELED and not is_changed:
        return None
    failures = 0
    while failures < len(column.jobs) and column.jobs[failures].state == FAILED:
        failures += 1
    most = MAX_CHANGED_MILLIS if is_changed else MAX_UNCHANGED_MILLIS
    # Without a cooldown, too, what fails waits.
    first = max(cooldown, MIN_FAILED_MILLIS) if failures else cooldown
    pause = min(first << failures, max(cooldown, most))
    return max(due, last.finished_at + pause)


async def count_stale(tx: Transaction) -> dict[bool, int]:
    """How many bound columns have versions after what they are filled up to; by auto_backfill."""
    counts = {True: 0, False: 0}
    for row in await tx.fetch(
        "SELECT DISTINCT c.table_id, c.branch, c.binding, c.watermarks, c.auto_backfill, "
        "(SELECT max(v.version) FROM table_versions v "
        "WHERE v.table_id = c.table_id AND v.branch = c.branch) FROM columns c"
    ):
        counts[bool(row[4])] += (row[5] or 0) > (find_covered(row[3], row[1]) or 0)
    return counts


async def _request(catalog: Catalog, column: Stale, watch: Watch) -> None:
    request = Backfill(column.name, column.branch, {})
    try:
        id = await columns.request_backfill(catalog, column.table, request)
    except PASSING as error:
        log.debug("column %s of %s is not filled yet: %s", column.name, column.table, error)
        return
    except PenstockError as error:
        watch.refused[column.key] = column.head
        log.warning("column %s of %s fills itself no more: %s", column.name, column.table, error)
        return
    watch.refused.pop(column.key, None)
    catalog.queue.auto_backfills += 1
    await jobs.alter(catalog, id, [SetProperty(PROPERTY, "true", "overwrite")])
    log.info("job %s fills column %s of %s", id, column.name, column.table)


async def _find_stale(tx: Transaction, changes: int) -> tuple[list[Stale], int]:
    """The columns with enough changes, each group of a function once; and the database's time."""
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    rows = await tx.fetch(
        f"SELECT {tables.COLUMNS}, c.branch, c.name, c.binding, c.inputs, c.watermarks, "
        "(SELECT max(v.version) FROM table_versions v "
        "WHERE v.table_id = c.table_id AND v.branch = c.branch) "
        "FROM columns c JOIN tables t ON t.id = c.table_id JOIN objects o ON o.id = c.table_id "
        "WHERE c.auto_backfill = 1 ORDER BY c.table_id, c.branch, c.name"
    )
    found: dict[tuple[str, str, str], Stale] = {}
    for row in rows:
        table = tables.to_table(row[:-6])
        branch, name, binding, inputs, watermarks, head = row[-6:]
        covered = find_covered(watermarks, branch) or 0
        if head is None or head - covered < changes or (table.id, branch, binding) in found:
            continue
        read = {path.split(".")[0].strip("`") for path in msgspec.json.decode(inputs)}
        without = await _find_filled(tx, table.id, branch, covered, read)
        if head - covered - len(without) < changes:
            continue
        first, last = await _find_changes(tx, table.id, branch, covered)
        ended = await _find_jobs(tx, table.id, branch, name, binding)
        stale = Stale(table, branch, name, binding, covered, head, first, last, tuple(ended))
        found[stale.key] = stale
    return list(found.values()), clock[0]


async def _find_filled(
    tx: Transaction, table_id: str, branch: str, covered: int, inputs: set[str]
) -> set[int]:
    """Later versions by backfills of columns that are no inputs: they change nothing here.

    Else two columns with a row that always fails would fill each other's versions for ever.
    """
    prefix = f"{table_id}/{branch}/"
    rows = await tx.fetch(
        "SELECT spec, result FROM jobs WHERE slot >= $1 AND slot < $2 AND kind = $3 AND state = $4",
        prefix,
        # What sorts right after everything that begins with the prefix.
        f"{prefix[:-1]}0",
        BACKFILL,
        SUCCEEDED,
    )
    found: set[int] = set()
    for row in rows:
        spec, result = msgspec.json.decode(row[0]), msgspec.json.decode(row[1])
        if not inputs & set(spec.get("columns") or [spec["column"]]):
            found |= {v for v in result.get("committed_versions") or () if v > covered}
    return found


async def _find_changes(
    tx: Transaction, table_id: str, branch: str, covered: int
) -> tuple[int, int]:
    row = await tx.fetch_one(
        "SELECT min(timestamp_millis), max(timestamp_millis) FROM table_versions "
        "WHERE table_id = $1 AND branch = $2 AND version > $3",
        table_id,
        branch,
        covered,
    )
    return (0, 0) if row is None else (row[0] or 0, row[1] or 0)


async def _find_jobs(
    tx: Transaction, table_id: str, branch: str, name: str, binding: str
) -> list[Ended]:
    """The last backfills of the column, which has a slot by its name or by its function."""
    rows = await tx.fetch(
        "SELECT state, created_at, finished_at, spec, result FROM jobs "
        "WHERE slot IN ($1, $2) AND kind = $3 ORDER BY number DESC LIMIT $4",
        f"{table_id}/{branch}/{name}",
        f"{table_id}/{branch}/{binding}",
        BACKFILL,
        JOBS_BACK,
    )
    return [_to_ended(row) for row in rows]


def _to_ended(row: Row) -> Ended:
    state, created_at, finished_at, spec, result = row
    fresh_at = _fresh_at(msgspec.json.decode(spec), msgspec.json.decode(result))
    return Ended(
        state,
        created_at,
        None if state in ACTIVE else finished_at,
        fresh_at if state == SUCCEEDED else None,
    )


def _fresh_at(spec: dict[str, Any], result: dict[str, Any]) -> int | None:
    """The version in which a whole backfill found nothing to do."""
    is_partial = spec.get("errors_only") or any(
        spec.get(key) is not None for key in ("where", "num_frags", "read_version")
    )
    version = result.get("version")
    is_idle = isinstance(version, int) and result.get("committed_versions") in ([], None)
    return version if is_idle and not is_partial else None
