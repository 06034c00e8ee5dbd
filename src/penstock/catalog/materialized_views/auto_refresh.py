"""Views that refresh themselves: after changes of what they read, a refresh is requested.

Several servers may look at once: the same request is queued once.
"""

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.jobs import due, jobs
from penstock.catalog.jobs.due import JOBS_BACK, LOOK_SECONDS, PASSING, Ended, Rules, plan_due
from penstock.catalog.materialized_views import materialized_views, refreshes
from penstock.catalog.materialized_views.freshness import Tracer
from penstock.catalog.materialized_views.materialized_views import SourceState, View, is_behind
from penstock.catalog.materialized_views.refreshes import Refresh
from penstock.catalog.names import tables
from penstock.catalog.names.transactions import SetProperty
from penstock.database.interface import Row, Transaction
from penstock.errors import PenstockError
from penstock.model.jobs import ACTIVE
from penstock.model.tables import MAIN

if TYPE_CHECKING:
    from lance import LanceDataset

log = logging.getLogger(__name__)

PROPERTY = "auto_refresh"
# Of a view that was never refreshed.
NEVER = -1
# More rows than anybody waits for.
MANY = 2**62


@dataclass(frozen=True, slots=True)
class Behind:
    """A view that is behind what it reads."""

    view: View
    # Changes of all sources together, by which one state of them is told from another.
    head: int
    first_change_at: int
    last_change_at: int
    # The newest first.
    jobs: tuple[Ended, ...]
    # How long the last refresh took.
    took_seconds: float = 0.0
    # What it has not followed: so many versions, of these sources.
    changes: int = 1
    ahead: tuple[SourceState, ...] = ()
    # The editions of its Iceberg views and those consented to, and the number of access.
    consent: tuple[object, ...] = ()

    @property
    def depends_on(self) -> object:
        """What must change before a request that was refused can go well."""
        return self.head, self.consent

    @property
    def rules_of(self) -> Rules | None:
        """The view's own rules: with a target lag, it begins in time to be ready by then."""
        lag = self.view.target_lag_seconds
        return None if lag is None else Rules(1, max(0.0, lag - self.took_seconds))

    def wanted(self, rules: Rules) -> int:
        """How many versions make a refresh worthwhile."""
        return (self.rules_of or rules).changes


@dataclass
class Watch:
    """What one server remembers between two looks."""

    # Views whose request was refused, by all that it depended on.
    refused: dict[str, object] = field(default_factory=dict)
    # How many rows changed in a source between two versions, for each view that counts them.
    rows: dict[tuple[str, str, int, int], int] = field(default_factory=dict)


async def run_for_ever(catalog: Catalog, rules: Rules) -> None:
    """Look at once, then whenever something changes or a view becomes due."""
    watch = Watch()
    await due.run_for_ever(catalog, "views to refresh", lambda: run_look(catalog, rules, watch))


async def run_look(catalog: Catalog, rules: Rules, watch: Watch) -> float:
    """Request what is due; returns the seconds until something else is."""
    behind, now = await catalog.database.read(_find_behind, rules)
    behind = [each for each in behind if await _has_enough(catalog, each, rules, watch)]
    waits = [LOOK_SECONDS]
    for each in behind:
        at = plan_due(each, each.rules_of or rules)
        if at is None or watch.refused.get(each.view.table.id) == each.depends_on:
            continue
        if at > now:
            waits.append((at - now) / 1000)
        else:
            await _request(catalog, each, watch)
    return min(waits)


async def count_stale(tx: Transaction) -> dict[bool, int]:
    """How many views are stale, also through others; by whether they refresh themselves."""
    counts, tracer = {True: 0, False: 0}, Tracer(tx)
    for view in await _list_views(tx, "1 = 1"):
        counts[_is_auto(view)] += (await tracer.trace(view)).is_stale
    return counts


async def _request(catalog: Catalog, behind: Behind, watch: Watch) -> None:
    table = behind.view.table
    try:
        id = await refreshes.request_refresh(catalog, behind.view, Refresh())
    except PASSING as error:
        log.debug("view %s is not refreshed yet: %s", table, error)
        return
    except PenstockError as error:
        watch.refused[table.id] = behind.depends_on
        log.warning("view %s refreshes itself no more: %s", table, error)
        return
    watch.refused.pop(table.id, None)
    catalog.queue.auto_refreshes += 1
    await jobs.alter(catalog, id, [SetProperty(PROPERTY, "true", "overwrite")])
    log.info("job %s refreshes view %s", id, table)


async def _find_behind(tx: Transaction, rules: Rules) -> tuple[list[Behind], int]:
    """The views that refresh themselves and have enough changes; and the database's time."""
    clock = await tx.fetch_one(
        "SELECT now_millis(), (SELECT taken FROM locks WHERE name = 'access')"
    )
    assert clock is not None
    found = []
    for view in await _list_views(tx, "m.auto_refresh = 1 OR m.target_lag_seconds IS NOT NULL"):
        sources = await materialized_views.list_sources(tx, view.table.id, view.watermark)
        if is_behind(view, sources):
            described = await _describe(tx, view, sources, clock[1])
            if described.changes >= described.wanted(rules) or rules.rows:
                found.append(described)
    return found, clock[0]


async def _has_enough(catalog: Catalog, behind: Behind, rules: Rules, watch: Watch) -> bool:
    """Whether a view misses enough versions, or else enough rows."""
    if behind.changes >= behind.wanted(rules):
        return True
    rows = 0
    try:
        for source in behind.ahead:
            rows += await _count_rows(catalog, behind.view, source, watch)
    except PASSING as error:
        log.debug("the rows that view %s misses are not counted yet: %s", behind.view.table, error)
    return rows >= rules.rows


async def _count_rows(catalog: Catalog, view: View, source: SourceState, watch: Watch) -> int:
    """How many rows of a source changed since the view followed it; found out once."""
    if source.head is None:
        return 0
    then = 0 if view.watermark is None else view.watermark.versions.get(source.id, 0)
    key = (view.table.id, source.id, then, source.head)
    if key not in watch.rows:
        for old in [each for each in watch.rows if each[:2] == key[:2]]:
            del watch.rows[old]
        watch.rows[key] = await _compare(catalog, view, source, then, source.head)
    return watch.rows[key]


async def _compare(catalog: Catalog, view: View, source: SourceState, then: int, now: int) -> int:
    table = await tables.find_by_id(catalog.database, source.id)
    if table is None:
        return 0
    reads = [path for s in view.definition.sources if s.id == source.id for path in s.reads]
    try:
        newest = await datasets.read(catalog, table, MAIN, now, lambda dataset: dataset)
        if not then:
            return await catalog.workers.run(newest.count_rows)
        known = await datasets.read(catalog, table, MAIN, then, lambda dataset: dataset)
        return await catalog.workers.run(_count_changed, newest, known, reads)
    except PASSING:
        raise
    except PenstockError:
        # A version or a column is gone: whatever that is, it is no small change.
        return MANY


def _count_changed(now: "LanceDataset", then: "LanceDataset", reads: list[str]) -> int:
    # Here, because few servers count rows.
    from penstock.lance.diff.row_diff import count_changed
    from penstock.lance.errors import translated

    with translated():
        return count_changed(now, then, reads)


def _is_auto(view: View) -> bool:
    return view.auto_refresh or view.target_lag_seconds is not None


def _count_changes(view: View, sources: list[SourceState]) -> int:
    """How many versions of its sources a view does not have; a replaced Iceberg view is one."""
    versions = {} if view.watermark is None else view.watermark.versions
    changes = 0
    for source in sources:
        if source.is_ahead is not False:
            # What is there again that was there before is a change, too.
            changes += max(1, (source.head or 0) - versions.get(source.id, 0))
    return changes


async def _describe(tx: Transaction, view: View, sources: list[SourceState], access: int) -> Behind:
    versions = {} if view.watermark is None else view.watermark.versions
    times = []
    for source in sources:
        if source.head is not None and source.is_ahead is not False:
            row = await tx.fetch_one(
                "SELECT min(timestamp_millis), max(timestamp_millis) FROM table_versions "
                "WHERE table_id = $1 AND branch = $2 AND version > $3",
                *(source.id, MAIN, versions.get(source.id, 0)),
            )
            times += [] if row is None or row[0] is None else [row]
    first = min((row[0] for row in times), default=0)
    last = max((row[1] for row in times), default=0)
    rows = await tx.fetch(
        "SELECT state, created_at, finished_at, started_at FROM jobs WHERE id IN "
        "(SELECT id FROM jobs WHERE slot = $1 UNION SELECT job_id FROM job_slots WHERE slot = $1) "
        "ORDER BY number DESC LIMIT $2",
        *(refreshes.slot_of(view.table.id), JOBS_BACK),
    )
    return Behind(
        view,
        sum(source.head or 0 for source in sources) if view.watermark else NEVER,
        # Before it was there it was not behind.
        max(first, view.created_at),
        max(last, view.created_at),
        tuple(_to_ended(row) for row in rows),
        _took(rows[0]) if rows else 0.0,
        _count_changes(view, sources),
        tuple(source for source in sources if source.is_ahead is not False),
        (access, *((source.edition, source.consented) for source in sources)),
    )


async def _list_views(tx: Transaction, which: str) -> list[View]:
    rows = await tx.fetch(
        f"SELECT {tables.COLUMNS}, {materialized_views.COLUMNS} FROM materialized_views m "
        "JOIN tables t ON t.id = m.id JOIN objects o ON o.id = m.id "
        f"WHERE {which} ORDER BY m.id"
    )
    cut = tables.COLUMNS.count(",") + 1
    return [
        materialized_views.to_view(replace(tables.to_table(row[:cut]), is_view=True), row[cut:])
        for row in rows
    ]


def _to_ended(row: Row) -> Ended:
    state, created_at, finished_at, _ = row
    return Ended(state, created_at, None if state in ACTIVE else finished_at)


def _took(row: Row) -> float:
    _, _, finished_at, started_at = row
    return (finished_at - started_at) / 1000 if finished_at and started_at else 0.0
