"""Request backfills of columns with auto_backfill, after the table has changed.

`catalog/jobs/due.py` decides when. Several servers may check at once: a request that is queued
already is not queued again.
"""

import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.columns.backfills import BackfillRequest
from penstock.catalog.columns.watermarks import find_covered, is_incomplete
from penstock.catalog.jobs import due, jobs
from penstock.catalog.jobs.due import (
    JOBS_BACK,
    LOOK_SECONDS,
    PASSING,
    PastJob,
    TriggerRules,
    plan_due,
)
from penstock.catalog.names import tables
from penstock.catalog.names.transactions import SetProperty
from penstock.database.interface import Row, Transaction
from penstock.errors import PenstockError
from penstock.jobs.specs import BACKFILL, BackfillSpec
from penstock.model.jobs import ACTIVE, SUCCEEDED
from penstock.model.slots import slot_of_column
from penstock.model.tables import Table

log = logging.getLogger(__name__)

PROPERTY = "auto_backfill"


@dataclass(frozen=True, slots=True)
class StaleColumn:
    """A column that needs a backfill: its table has newer versions, or the last one left rows."""

    table: Table
    branch: str
    name: str
    binding: str
    covered: int
    head: int
    first_change_at: int
    last_change_at: int
    # The newest first.
    jobs: tuple[PastJob, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.table.id, self.branch, self.binding


@dataclass
class BackfillWatch:
    """What one server remembers between two checks."""

    # Refused requests, by the version of the table that they were refused at.
    refused: dict[tuple[str, str, str], int] = field(default_factory=dict)


async def run_for_ever(catalog: Catalog, rules: TriggerRules) -> None:
    """Check at once, then whenever something changes or a column becomes due."""
    watch = BackfillWatch()
    await due.run_for_ever(catalog, "columns to fill", lambda: run_look(catalog, rules, watch))


async def run_look(catalog: Catalog, rules: TriggerRules, watch: BackfillWatch) -> float:
    """Request the backfills that are due; returns the seconds until the next one is."""
    stale, now = await catalog.database.read(_find_stale, rules.changes)
    waits = [LOOK_SECONDS]
    for column in stale:
        at = plan_due(column, rules)
        if at is None or watch.refused.get(column.key) == column.head:
            continue
        if at > now:
            waits.append((at - now) / 1000)
        else:
            await _request(catalog, column, watch)
    return min(waits)


async def count_stale(tx: Transaction) -> dict[bool, int]:
    """How many bound columns may be stale in their newest version; by auto_backfill.

    Failed rows do not count: only a new version of them, or of the function, can help.
    """
    counts = {True: 0, False: 0}
    for row in await tx.fetch(
        "SELECT DISTINCT c.table_id, c.branch, c.binding, c.watermarks, c.auto_backfill, "
        "(SELECT max(v.version) FROM table_versions v "
        "WHERE v.table_id = c.table_id AND v.branch = c.branch) FROM columns c"
    ):
        is_behind = (row[5] or 0) > (find_covered(row[3], row[1]) or 0)
        counts[bool(row[4])] += is_behind or is_incomplete(row[3], row[1])
    return counts


async def _request(catalog: Catalog, column: StaleColumn, watch: BackfillWatch) -> None:
    request = BackfillRequest(column.name, column.branch, {})
    try:
        id = await backfills.request_backfill(catalog, column.table, request)
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


async def _find_stale(tx: Transaction, changes: int) -> tuple[list[StaleColumn], int]:
    """The columns with enough changes, one for each function; and the database's time."""
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    rows = await tx.fetch(
        f"SELECT {tables.COLUMNS}, c.branch, c.name, c.binding, c.inputs, c.watermarks, "
        "(SELECT max(v.version) FROM table_versions v "
        "WHERE v.table_id = c.table_id AND v.branch = c.branch) "
        "FROM columns c JOIN tables t ON t.id = c.table_id JOIN objects o ON o.id = c.table_id "
        "WHERE c.auto_backfill = 1 ORDER BY c.table_id, c.branch, c.name"
    )
    found: dict[tuple[str, str, str], StaleColumn] = {}
    for row in rows:
        table = tables.to_table(row[:-6])
        branch, name, binding, inputs, watermarks, head = row[-6:]
        covered = find_covered(watermarks, branch) or 0
        if head is None or (table.id, branch, binding) in found:
            continue
        # Rows that a partial job, or one beside a writer, left out are due like new versions.
        if not is_incomplete(watermarks, branch):
            if head - covered < changes:
                continue
            read = {path.split(".")[0].strip("`") for path in msgspec.json.decode(inputs)}
            known = await tx.fetch(
                "SELECT name, binding FROM columns WHERE table_id = $1 AND branch = $2",
                *(table.id, branch),
            )
            # A job knows an input by the name that it had then.
            read |= {row[1] for row in known if row[0] in read}
            without = await _find_filled(tx, table.id, branch, covered, read)
            if head - covered - len(without) < changes:
                continue
        first, last = await _find_changes(tx, table.id, branch, covered)
        ended = await _find_jobs(tx, table.id, branch, name, binding)
        stale = StaleColumn(table, branch, name, binding, covered, head, first, last, tuple(ended))
        found[stale.key] = stale
    return list(found.values()), clock[0]


async def _find_filled(
    tx: Transaction, table_id: str, branch: str, covered: int, inputs: set[str]
) -> set[int]:
    """Later versions that only filled columns which are not inputs: they change nothing here.

    Inputs are given by names and bindings.

    Otherwise two columns with a row that always fails would trigger each other for ever.
    """
    rows = await tx.fetch(
        "SELECT spec, result FROM jobs WHERE object_id = $1 AND kind = $2 AND state = $3",
        *(table_id, BACKFILL, SUCCEEDED),
    )
    found: set[int] = set()
    for row in rows:
        spec, result = msgspec.json.decode(row[0], type=BackfillSpec), msgspec.json.decode(row[1])
        if spec.branch == branch and not inputs & {*spec.targets, spec.binding}:
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
) -> list[PastJob]:
    """The last backfills of the column; its slot has the name of the column, or the binding."""
    rows = await tx.fetch(
        "SELECT state, created_at, finished_at, spec, result FROM jobs "
        "WHERE slot IN ($1, $2) AND kind = $3 ORDER BY number DESC LIMIT $4",
        *(str(slot_of_column(table_id, branch, each)) for each in (name, binding)),
        BACKFILL,
        JOBS_BACK,
    )
    return [_to_past_job(row) for row in rows]


def _to_past_job(row: Row) -> PastJob:
    state, created_at, finished_at, spec, result = row
    fresh_at = _fresh_at(msgspec.json.decode(spec, type=BackfillSpec), msgspec.json.decode(result))
    return PastJob(
        state,
        created_at,
        None if state in ACTIVE else finished_at,
        fresh_at if state == SUCCEEDED else None,
    )


def _fresh_at(spec: BackfillSpec, result: dict[str, Any]) -> int | None:
    """The version at which a full backfill found nothing to do."""
    version = result.get("version")
    is_idle = isinstance(version, int) and result.get("committed_versions") in ([], None)
    return version if is_idle and not spec.is_partial else None
