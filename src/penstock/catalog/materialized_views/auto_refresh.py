"""Request refreshes of views with auto_refresh, after what they read has changed.

Several servers may check at once: a request that is queued already is not queued again.
"""

import logging
from dataclasses import dataclass, field, replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.jobs import due, jobs
from penstock.catalog.jobs.due import (
    JOBS_BACK,
    LOOK_SECONDS,
    PASSING,
    PastJob,
    TriggerRules,
    plan_due,
)
from penstock.catalog.materialized_views import materialized_views, refreshes
from penstock.catalog.materialized_views.freshness import Tracer
from penstock.catalog.materialized_views.materialized_views import (
    MaterializedView,
    SourceState,
    is_behind,
)
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.catalog.names import tables
from penstock.catalog.names.transactions import SetProperty
from penstock.database.interface import Row, Transaction
from penstock.errors import PenstockError
from penstock.lance.doors import lance, row_diff
from penstock.lance.errors import translated
from penstock.model.jobs import ACTIVE
from penstock.model.slots import slot_of_view
from penstock.model.tables import MAIN

log = logging.getLogger(__name__)

PROPERTY = "auto_refresh"
# For a view that was never refreshed.
NEVER = -1
# How often the passing of time alone makes a view without a target lag refresh itself, if its
# query reads the clock.
CLOCK_SECONDS = 3600
# More rows than any setting asks for.
MANY = 2**62


@dataclass(frozen=True, slots=True)
class StaleView:
    """A view that is behind what it reads."""

    view: MaterializedView
    # A number that changes whenever any source does.
    head: int
    first_change_at: int
    last_change_at: int
    # Newest first.
    jobs: tuple[PastJob, ...]
    # How long the last refresh took.
    took_seconds: float = 0.0
    # The versions that it has not followed, by source.
    changes: int = 1
    ahead: tuple[SourceState, ...] = ()
    # The editions of its Iceberg views, the consented ones, and the access number.
    consent: tuple[object, ...] = ()

    @property
    def depends_on(self) -> object:
        """Everything that a refused request depends on."""
        return self.head, self.consent

    @property
    def rules_of(self) -> TriggerRules | None:
        """The view's own rules: with a target lag, start early enough to finish in time."""
        lag = self.view.target_lag_seconds
        return None if lag is None else TriggerRules(1, max(0.0, lag - self.took_seconds))

    def wanted(self, rules: TriggerRules) -> int:
        """How many versions make a refresh worthwhile."""
        return (self.rules_of or rules).changes


@dataclass
class RefreshWatch:
    """What one server remembers between two checks."""

    # Views whose request was refused, with everything that it depended on.
    refused: dict[str, object] = field(default_factory=dict)
    # How many rows changed in a source between two versions, for views that count rows.
    rows: dict[tuple[str, str, int, int], int] = field(default_factory=dict)


async def run_for_ever(catalog: Catalog, rules: TriggerRules) -> None:
    """Check at once, then whenever something changes or a view becomes due."""
    watch = RefreshWatch()
    await due.run_for_ever(catalog, "views to refresh", lambda: run_look(catalog, rules, watch))


async def run_look(catalog: Catalog, rules: TriggerRules, watch: RefreshWatch) -> float:
    """Request the refreshes that are due; returns the seconds until the next one."""
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
    """Count stale views, also through other views; by whether they refresh themselves."""
    counts, tracer = {True: 0, False: 0}, Tracer(tx)
    for view in await list_views(tx, "1 = 1"):
        counts[_is_auto(view)] += (await tracer.trace(view)).is_stale
    return counts


async def _request(catalog: Catalog, behind: StaleView, watch: RefreshWatch) -> None:
    table = behind.view.table
    try:
        id = await refreshes.request_refresh(catalog, behind.view, RefreshRequest())
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


async def _find_behind(tx: Transaction, rules: TriggerRules) -> tuple[list[StaleView], int]:
    """The auto-refresh views with enough changes; and the database's time."""
    clock = await tx.fetch_one(
        "SELECT now_millis(), (SELECT taken FROM locks WHERE name = 'access')"
    )
    assert clock is not None
    found = []
    for view in await list_views(tx, "m.auto_refresh = 1 OR m.target_lag_seconds IS NOT NULL"):
        sources = await materialized_views.list_sources(tx, view)
        due_at = find_clock_due(view)
        if due_at is None and not is_behind(view, sources):
            continue
        described = await _describe(tx, view, sources, *clock)
        is_enough = described.changes >= described.wanted(rules) or rules.rows
        if is_enough and is_behind(view, sources):
            found.append(described)
        if due_at is not None:
            found.append(_describe_timed(described, due_at, clock[0], rules))
    return found, clock[0]


def find_clock_due(view: MaterializedView) -> int | None:
    """From when the passing of time counts as a change of a view; None if it never does."""
    moment = None if view.watermark is None else view.watermark.moment
    if moment is None:
        return None
    wait = CLOCK_SECONDS if view.target_lag_seconds is None else 0
    return moment // 1000 + wait * 1000


def _describe_timed(described: StaleView, due_at: int, now: int, rules: TriggerRules) -> StaleView:
    """The same view as one that is behind only because time has passed."""
    changes = described.wanted(rules)
    return replace(described, first_change_at=due_at, last_change_at=now, changes=changes, ahead=())


async def _has_enough(
    catalog: Catalog, behind: StaleView, rules: TriggerRules, watch: RefreshWatch
) -> bool:
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


async def _count_rows(
    catalog: Catalog, view: MaterializedView, source: SourceState, watch: RefreshWatch
) -> int:
    """Count the changed rows of a source since the view followed it; cached."""
    if source.head is None:
        return 0
    then = 0 if view.watermark is None else view.watermark.versions.get(source.id, 0)
    key = (view.table.id, source.id, then, source.head)
    if key not in watch.rows:
        for old in [each for each in watch.rows if each[:2] == key[:2]]:
            del watch.rows[old]
        watch.rows[key] = await _compare(catalog, view, source, then, source.head)
    return watch.rows[key]


async def _compare(
    catalog: Catalog, view: MaterializedView, source: SourceState, then: int, now: int
) -> int:
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
        # A version or a column is gone, which is not a small change.
        return MANY


def _count_changed(now: "lance.LanceDataset", then: "lance.LanceDataset", reads: list[str]) -> int:
    with translated():
        return row_diff.count_changed(now, then, reads)


def _is_auto(view: MaterializedView) -> bool:
    return view.auto_refresh or view.target_lag_seconds is not None


def _count_changes(view: MaterializedView, sources: list[SourceState]) -> int:
    """Count its sources' versions that a view misses; a replaced Iceberg view is one."""
    versions = {} if view.watermark is None else view.watermark.versions
    changes = 0
    for source in sources:
        if source.is_ahead is not False:
            # Going back to an earlier state is a change, too.
            changes += max(1, (source.head or 0) - versions.get(source.id, 0))
    return changes


async def _describe(
    tx: Transaction, view: MaterializedView, sources: list[SourceState], now: int, access: int
) -> StaleView:
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
    if any(source.edition != source.consented for source in sources):
        # An Iceberg view, or what a name in it stands for, is another one since the last request.
        last = now
    rows = await tx.fetch(
        "SELECT state, created_at, finished_at, started_at FROM jobs WHERE id IN "
        "(SELECT id FROM jobs WHERE slot = $1 UNION SELECT job_id FROM job_slots WHERE slot = $1) "
        "ORDER BY number DESC LIMIT $2",
        *(str(slot_of_view(view.table.id)), JOBS_BACK),
    )
    return StaleView(
        view,
        sum(source.head or 0 for source in sources) if view.watermark else NEVER,
        # A view was not behind before it existed.
        max(first, view.created_at),
        max(last, view.created_at),
        tuple(_to_past_job(row) for row in rows),
        _took(rows[0]) if rows else 0.0,
        _count_changes(view, sources),
        tuple(source for source in sources if source.is_ahead is not False),
        (access, view.edition, *((source.edition, source.consented) for source in sources)),
    )


async def list_views(tx: Transaction, which: str, *values: object) -> list[MaterializedView]:
    rows = await tx.fetch(
        f"SELECT {tables.COLUMNS}, {materialized_views.COLUMNS} "
        f"FROM {materialized_views.RELATIONS} "
        "JOIN tables t ON t.id = m.id JOIN objects o ON o.id = m.id "
        f"WHERE {which} ORDER BY m.id",
        *values,
    )
    cut = tables.COLUMNS.count(",") + 1
    return [
        materialized_views.to_view(replace(tables.to_table(row[:cut]), is_view=True), row[cut:])
        for row in rows
    ]


def _to_past_job(row: Row) -> PastJob:
    state, created_at, finished_at, _ = row
    return PastJob(state, created_at, None if state in ACTIVE else finished_at)


def _took(row: Row) -> float:
    _, _, finished_at, started_at = row
    return (finished_at - started_at) / 1000 if finished_at and started_at else 0.0
