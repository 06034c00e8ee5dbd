"""Describe a materialized view: its query, and whether and how far it is behind."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views import (
    consents,
    freshness,
    materialized_views,
    pending_alterations,
)
from penstock.catalog.materialized_views.cron import Schedule, find_tick
from penstock.catalog.materialized_views.freshness import BaseTable, Tracer, ViewFreshness
from penstock.catalog.materialized_views.materialized_views import MaterializedView, SourceState
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.lance.write.view_tables import MAX_QUERY_CHARACTERS, read_schema
from penstock.model.identifiers import Identifier, show
from penstock.model.jobs import show_value
from penstock.model.moments import SAMPLE, define_at, show_moment
from penstock.model.origins import Origin
from penstock.model.slots import slot_of_view
from penstock.model.tables import Table
from penstock.model.views import SYSTEM_COLUMNS, Definition


@dataclass(frozen=True, slots=True)
class ShownQuery:
    """A view's query in terms of filter, projection and limit."""

    source: Identifier
    columns: list[tuple[str, str]]
    filter: str | None = None
    limit: int | None = None


async def describe(catalog: Catalog, view: MaterializedView, origin: Origin) -> dict[str, str]:
    """The properties of a view that its table's description adds."""
    standing = await Tracer(catalog.database).trace(view)
    sources = standing.sources
    told = {
        "penstock.kind": view.asked.kind,
        "penstock.auto_refresh": show_value(view.auto_refresh),
        "penstock.watermark": _encode(_watermark(view, sources)),
        "penstock.stale": show_value(standing.is_stale),
    }
    if len(view.asked.source_query) <= MAX_QUERY_CHARACTERS:
        told["penstock.source_query"] = view.asked.source_query
    if view.watermark is not None and view.watermark.moment is not None:
        told["penstock.moment"] = show_moment(view.watermark.moment)
    if (job := await pending_alterations.find_job(catalog.database, view.table.id)) is not None:
        told["penstock.altered_by_job"] = job
    if view.refreshed_at is not None:
        told["penstock.refreshed_at"] = str(view.refreshed_at)
    if view.target_lag_seconds is not None:
        told["penstock.target_lag_seconds"] = str(view.target_lag_seconds)
    if view.schedule is not None:
        told |= await _tell_schedule(catalog.database, view.schedule)
    if standing.is_stale:
        told |= await _tell_stale(catalog.database, standing, origin)
    if any(source.consented != source.edition for source in sources):
        needed = await consents.find_needed(catalog, view, origin)
        if needed is not None:
            told["penstock.needs_consent"] = _encode(needed)
    return told


async def _tell_schedule(tx: Transaction, schedule: Schedule) -> dict[str, str]:
    clock = await tx.fetch_one("SELECT now_millis()")
    assert clock is not None
    tick = None
    # A server with a newer list of time zones may have taken it.
    with contextlib.suppress(InvalidRequest):
        tick = find_tick(schedule, clock[0])
    return {
        "penstock.refresh_schedule": schedule.expression,
        "penstock.refresh_schedule_timezone": schedule.timezone or "UTC",
        **({} if tick is None else {"penstock.next_refresh_at": str(tick)}),
    }


async def list_headers(tx: Transaction, table: Table) -> tuple[tuple[bytes, bytes], ...]:
    """Headers that say how fresh the rows of a view are."""
    view = await materialized_views.load(tx, table)
    standing = await Tracer(tx).trace(view)
    return (
        (b"x-penstock-stale", show_value(standing.is_stale).encode()),
        (b"x-penstock-watermark", _encode_ascii(_watermark(view, standing.sources))),
    )


async def find_first_job(tx: Transaction, table_id: str) -> str | None:
    """The first refresh of a view, for as long as it can be described."""
    row = await tx.fetch_one(
        "SELECT id FROM jobs WHERE slot = $1 ORDER BY created_at, number LIMIT 1",
        str(slot_of_view(table_id)),
    )
    return None if row is None else str(row[0])


def show_query(view: MaterializedView) -> ShownQuery:
    """The query as filter, projection and limit if it is one; else the table and the outputs."""
    definition = _define_now(view)
    source = definition.sources[0].table if definition.sources else view.table.identifier
    names = [name for name in read_schema(definition).names if name not in SYSTEM_COLUMNS]
    found = definition.rows if definition.kind == "query" else None
    if found is None:
        return ShownQuery(source, [(name, name) for name in names])
    texts = {column.name: column.expression for column in found.columns}
    columns = [(name, texts.get(name, name)) for name in names]
    return ShownQuery(source, columns, found.filter, found.limit)


def _define_now(view: MaterializedView) -> Definition:
    """The definition with the moment that the view has in place of the clock."""
    moment = None if view.watermark is None else view.watermark.moment
    return define_at(view.definition, SAMPLE if moment is None else moment)


def _watermark(view: MaterializedView, sources: Sequence[SourceState]) -> dict[str, int]:
    """The versions that the view is made from, by the current names of its tables."""
    if view.watermark is None:
        return {}
    versions = view.watermark.versions
    return {show(s.identifier): versions[s.id] for s in sources if s.id in versions}


async def _tell_stale(tx: Transaction, standing: ViewFreshness, origin: Origin) -> dict[str, str]:
    """What a stale view misses, through which sources, and since when."""
    view = standing.view
    seen = await freshness.keep_seen(tx, standing.list_pending(), origin.grantees)
    told = {}
    if pending := _count_pending(view, standing.sources):
        told["penstock.pending"] = _encode(pending)
    if through := _count_through(standing, seen):
        told["penstock.through"] = _encode(through)
    lag = await freshness.find_lag_millis(tx, standing)
    if lag is not None:
        told["penstock.lag_seconds"] = str(lag / 1000)
        if view.target_lag_seconds is not None:
            told["penstock.late"] = show_value(lag > view.target_lag_seconds * 1000)
    return told


def _count_pending(view: MaterializedView, sources: Sequence[SourceState]) -> dict[str, int]:
    """How many versions of each source came since; leaves out one that went back."""
    versions = {} if view.watermark is None else view.watermark.versions
    counts = {show(s.identifier): (s.head or 0) - versions.get(s.id, 0) for s in sources}
    return {name: count for name, count in counts.items() if count > 0}


def _count_through(
    standing: ViewFreshness, pending: Sequence[BaseTable]
) -> dict[str, dict[str, int]]:
    """For each source view that makes it stale: its changed base tables, by how many versions."""
    found: dict[str, dict[str, int]] = {show(source): {} for source in standing.stale_sources}
    for base in pending:
        if base.through is not None:
            found.setdefault(show(base.through), {})[show(base.identifier)] = base.pending
    return found


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _encode_ascii(value: dict[str, int]) -> bytes:
    """JSON for a header, in ASCII."""
    return json.dumps(value, separators=(",", ":")).encode()
