"""Alterations that wait for their job's commit, and what becomes of the view's record with it.

One is under way while its job is queued or running; what an ended job left here counts no more.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs

from penstock.catalog.impact import overtaken_alterations
from penstock.catalog.jobs.jobs import UNFINISHED
from penstock.catalog.materialized_views import freshness, materialized_views
from penstock.catalog.materialized_views.cron import Schedule
from penstock.catalog.materialized_views.materialized_views import SentDefinition
from penstock.catalog.names import dependents, tables, view_sources
from penstock.catalog.names.view_sources import ViewSources
from penstock.database.interface import Transaction
from penstock.errors import InvalidTableState, TableInUse
from penstock.jobs.specs import REFRESH, RefreshSpec
from penstock.model.origins import NOBODY, Origin
from penstock.model.properties import decode_properties, encode_properties
from penstock.model.slots import slot_of_view
from penstock.model.tables import Table
from penstock.model.views import Definition, Watermark

COLUMNS = "job_id, request, definition, sources, settings, owner, made_by"
RECORD = (
    "request, definition, owner, auto_refresh, target_lag_seconds, watermark, refreshed_at, edition"
)
# What a view has besides its record.
BESIDE = {
    "view_sources": view_sources.COLUMNS,
    "view_definitions": "view_id, edition, request, version, job_id, made_by, made_at",
    "view_alterations": f"view_id, {COLUMNS}, made_at",
    "refresh_schedules": "view_id, expression, timezone, done_until",
}

Undo = Callable[[Transaction], Awaitable[None]]


class Settings(Struct, frozen=True, omit_defaults=True):
    """Settings of a view to set; what is unset stays, and a property of None is removed."""

    auto_refresh: bool | UnsetType = UNSET
    target_lag_seconds: int | UnsetType | None = UNSET
    schedule: Schedule | UnsetType | None = UNSET
    properties: dict[str, str | None] = {}


@dataclass(frozen=True, slots=True)
class AlteringCommit:
    """A commit that makes a view one of another definition, as it says itself."""

    job_id: str
    digest: str
    watermark: Watermark


async def find_job(tx: Transaction, view_id: str) -> str | None:
    """The job that is altering a view."""
    row = await tx.fetch_one(
        "SELECT a.job_id FROM view_alterations a JOIN jobs j ON j.id = a.job_id "
        f"WHERE a.view_id = $1 AND j.{UNFINISHED}",
        view_id,
    )
    return None if row is None else str(row[0])


async def check_none(tx: Transaction, table: Table) -> None:
    """Refuse a second alteration of a view."""
    if (job := await find_job(tx, table.id)) is not None:
        raise TableInUse(
            f"{table} is being altered by job {job}",
            detail="wait for that job (or resume it) or cancel it, then alter the view",
        )


async def insert(
    tx: Transaction,
    view_id: str,
    job_id: str,
    asked: SentDefinition,
    definition: Definition,
    sources: ViewSources,
    settings: Settings,
    origin: Origin,
) -> None:
    """Record an alteration, in the transaction that queues its job."""
    await tx.fetch("DELETE FROM view_alterations WHERE view_id = $1", view_id)
    await tx.fetch(
        f"INSERT INTO view_alterations (view_id, {COLUMNS}, made_at) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now_millis())",
        *(view_id, job_id, _encode(asked), _encode(definition), _encode(sources)),
        *(_encode(settings), _encode(origin.grantees), origin.principal),
    )


async def set_settings(tx: Transaction, view_id: str, settings: Settings) -> None:
    """Set whether, how soon and when a view refreshes itself, and its properties."""
    changes: dict[str, int | None] = {}
    if settings.auto_refresh is not UNSET:
        changes["auto_refresh"] = int(settings.auto_refresh)
    if settings.target_lag_seconds is not UNSET:
        changes["target_lag_seconds"] = settings.target_lag_seconds
    elif settings.auto_refresh is False:
        # A lag is another way to refresh itself after changes, and would go on doing that.
        changes["target_lag_seconds"] = None
    for name, value in changes.items():
        await tx.fetch(f"UPDATE materialized_views SET {name} = $2 WHERE id = $1", view_id, value)
    if settings.schedule is not UNSET:
        await materialized_views.set_schedule_in(tx, view_id, settings.schedule)
    row = await tx.fetch_one("SELECT properties FROM objects WHERE id = $1", view_id)
    if row is not None and settings.properties:
        told = {**decode_properties(row[0]), **settings.properties}
        kept = {key: value for key, value in told.items() if value is not None}
        await tx.fetch(
            "UPDATE objects SET properties = $2 WHERE id = $1", view_id, encode_properties(kept)
        )


async def apply_in(tx: Transaction, table: Table, commit: AlteringCommit, version: int) -> Undo:
    """Make the alteration the view's record, in the transaction that takes its commit.

    Returns a step that undoes it.
    """
    row = await tx.fetch_one(
        f"SELECT {COLUMNS} FROM view_alterations WHERE view_id = $1 AND job_id = $2",
        *(table.id, commit.job_id),
    )
    definition = None if row is None else msgspec.json.decode(row[2], type=Definition)
    if row is None or definition is None or definition.digest != commit.digest:
        raise InvalidTableState(
            f"job {commit.job_id} has no alteration of {table} to commit",
            detail="request the alteration again",
        )
    _, request, text, sources, settings, owner, made_by = row
    reads = msgspec.json.decode(sources, type=ViewSources)
    grantees = msgspec.json.decode(owner, type=tuple[str, ...])
    ids = reads.ids
    await overtaken_alterations.lock_in(tx, table, ids)
    undo = await remember(tx, table.id)
    await materialized_views.check_sources(tx, grantees, ids)
    await _check(tx, table, ids, definition, grantees)
    watermark = structs.replace(commit.watermark, view_version=version)
    watermark = structs.replace(watermark, bases=await freshness.find_bases(tx, watermark))
    edited = await tx.fetch_one(
        "UPDATE materialized_views SET request = $2, definition = $3, owner = $4, watermark = $5, "
        "refreshed_at = now_millis(), edition = edition + 1 WHERE id = $1 RETURNING edition",
        *(table.id, request, text, owner, _encode(watermark)),
    )
    assert edited is not None
    await set_settings(tx, table.id, msgspec.json.decode(settings, type=Settings))
    answering = dict.fromkeys(ids, str(made_by))
    # Tags on tables that it no longer reads are found by the next sweep of each.
    await dependents.record(tx, table.id, reads, answering)
    await tx.fetch(
        "INSERT INTO view_definitions (view_id, edition, request, version, job_id, made_by, "
        "made_at) VALUES ($1, $2, $3, $4, $5, $6, now_millis())",
        *(table.id, edited[0], request, version, commit.job_id, made_by),
    )
    await tx.fetch("DELETE FROM view_alterations WHERE view_id = $1", table.id)
    await renew_queued(tx, table.id, definition, edited[0])
    return undo


async def find_obstacle(tx: Transaction, job_id: str) -> str:
    """Why a job cannot commit its alteration: what others did since it was requested."""
    row = await tx.fetch_one(
        "SELECT view_id, owner, sources, definition FROM view_alterations WHERE job_id = $1", job_id
    )
    table = None if row is None else await tables.find_by_id(tx, row[0])
    # Without a record it alters nothing, or an attempt that could not report has committed it.
    if row is None or table is None:
        return ""
    grantees = msgspec.json.decode(row[1], type=tuple[str, ...])
    ids = msgspec.json.decode(row[2], type=ViewSources).ids
    try:
        await _check(tx, table, ids, msgspec.json.decode(row[3], type=Definition), grantees)
    except TableInUse as error:
        return f"{error.message}; {error.detail}"
    return ""


async def _check(
    tx: Transaction,
    table: Table,
    ids: frozenset[str],
    definition: Definition,
    grantees: tuple[str, ...],
) -> None:
    """Refuse what others stand in the way of, told to who asked for the alteration."""
    before = (await materialized_views.load(tx, table)).definition
    asking = replace(NOBODY, grantees=grantees)
    await overtaken_alterations.check_in(tx, table, ids, before, definition, asking)


async def renew_queued(tx: Transaction, view_id: str, definition: Definition, edition: int) -> None:
    """Give refreshes that wait behind the alteration the view's new definition.

    Cascades are left: which views they refresh, and in which order, depends on the definitions. So
    are refreshes that were paused: what they have finished is by the old definition.
    """
    rows = await tx.fetch(
        "SELECT id, spec FROM jobs WHERE slot = $1 AND kind = $2 AND state = 'QUEUED' "
        "AND attempt = 0",
        *(str(slot_of_view(view_id)), REFRESH),
    )
    for id, text in rows:
        spec = msgspec.json.decode(text, type=RefreshSpec)
        if spec.upstream or spec.alteration is not None:
            continue
        renewed = structs.replace(
            spec,
            definition=definition,
            edition=edition,
            states={},
            inner={},
            source_ids=tuple(sorted({source.id for source in definition.sources})),
        )
        await tx.fetch("UPDATE jobs SET spec = $2 WHERE id = $1", id, _encode(renewed))


async def remember(tx: Transaction, view_id: str) -> Undo:
    """A step that restores the view's record and all that belongs to it."""
    record = await tx.fetch_one(f"SELECT {RECORD} FROM materialized_views WHERE id = $1", view_id)
    named = await tx.fetch_one("SELECT properties FROM objects WHERE id = $1", view_id)
    kept = {
        relation: await tx.fetch(f"SELECT {columns} FROM {relation} WHERE view_id = $1", view_id)
        for relation, columns in BESIDE.items()
    }
    assert record is not None
    assert named is not None

    async def bring_back(tx: Transaction) -> None:
        sets = ", ".join(f"{name} = ${n + 2}" for n, name in enumerate(RECORD.split(", ")))
        await tx.fetch(f"UPDATE materialized_views SET {sets} WHERE id = $1", view_id, *record)
        await tx.fetch("UPDATE objects SET properties = $2 WHERE id = $1", view_id, named[0])
        for relation, columns in BESIDE.items():
            await tx.fetch(f"DELETE FROM {relation} WHERE view_id = $1", view_id)
            places = ", ".join(f"${n + 1}" for n in range(columns.count(",") + 1))
            for row in kept[relation]:
                await tx.fetch(f"INSERT INTO {relation} ({columns}) VALUES ({places})", *row)

    return bring_back


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
