"""Dependents: materialized views, and the tables and Iceberg views that they read."""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.names import view_sources
from penstock.catalog.names.view_sources import ViewSources
from penstock.database.interface import Row, Transaction
from penstock.errors import Forbidden, PenstockError, TableInUse
from penstock.jobs.doors import view_notes
from penstock.lance.storage.lake import Place
from penstock.model.allowances import Allowance
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.origins import Origin
from penstock.model.rights import OWN, READ, VIEW, Need
from penstock.model.tables import Table

log = logging.getLogger(__name__)

# How many parameters one statement comfortably takes.
AT_ONCE = 500
SHOWN = 10
# What there is of a table beside its row.
TABLE_RECORDS = (
    *("table_versions", "columns", "declarations", "table_sizes", "table_growth"),
    "upkeep_policies",
)
# What a request may say about what depends on its object.
OPTIONS = "use ?cascade=true to drop them along with it, or ?force=true to let them break"


@dataclass(frozen=True, slots=True)
class KeptVersions:
    """A table's folder, with versions that are kept for a view."""

    view_id: str
    location: str


async def find_readers(tx: Transaction, ids: Collection[str]) -> list[str]:
    """The views that read one of these, directly or through other views."""
    known, found, new = set(ids), list[str](), list(ids)
    while new:
        direct = [view for each in new for view in await view_sources.list_readers(tx, each)]
        new = [view for view in dict.fromkeys(direct) if view not in known]
        known |= set(new)
        found += new
    return found


async def find_sources(tx: Transaction, ids: Collection[str]) -> set[str]:
    """Everything that these are made from, directly or through other views."""
    found, new = set[str](), set(ids)
    while new:
        rows = [
            row[0]
            for view in sorted(new)
            for row in await tx.fetch("SELECT source_id FROM view_sources WHERE view_id = $1", view)
        ]
        new = set(rows) - found
        found |= new
    return found


async def check_unread(
    tx: Transaction,
    what: str,
    ids: Sequence[str],
    allowed: Allowance | None,
    origin: Origin,
    named_by: Sequence[str] = (),
) -> list[str]:
    """The materialized views that a drop takes along; refused when it may not break what reads it.

    `named_by` are Iceberg views whose SQL names what is dropped. `allowed` is None where the
    request has no such options.
    """
    for id in ids:
        # Locked first, so that on PostgreSQL a view that is being created is seen.
        await tx.fetch("UPDATE objects SET id = id WHERE id = $1", id)
    views = await find_readers(tx, [*ids, *(named_by if allowed and allowed.cascade else ())])
    readers = [*views, *named_by]
    if not readers or (allowed is not None and allowed.force):
        return []
    if allowed is None or not allowed.cascade:
        raise TableInUse(
            f"{what} is read by {await tell(tx, readers, origin)}",
            detail="drop these first" if allowed is None else f"drop these first, or {OPTIONS}",
        )
    await check_owned(tx, what, readers, origin)
    return views


async def tell(tx: Transaction, views: Sequence[str], origin: Origin) -> str:
    """The names of some views, as far as the caller may see them."""
    named = await list_named(tx, views[:AT_ONCE])
    seen = [
        name
        for _, name, kind in named
        if await grants.may_in(tx, origin.grantees, Need(READ, kind, name))
    ]
    if not seen:
        return "views" if any(kind == VIEW for _, _, kind in named) else "materialized views"
    shown = ", ".join(map(show, seen[:SHOWN]))
    return f"{shown} and others" if len(views) > len(seen[:SHOWN]) else shown


async def check_owned(tx: Transaction, what: str, views: Sequence[str], origin: Origin) -> None:
    """Refuse to drop views that the caller does not own; names only those it may see."""
    for _, name, kind in await list_named(tx, views) if origin.grantees else ():
        if await grants.may_in(tx, origin.grantees, Need(OWN, kind, name)):
            continue
        if await grants.may_in(tx, origin.grantees, Need(READ, kind, name)):
            raise grants.lacking(origin.principal, Need(OWN, kind, name))
        raise Forbidden(
            f"{what} is read by a view that {origin.principal} does not own",
            detail="ask who owns it to drop it first",
        )


async def record(
    tx: Transaction, view_id: str, sources: ViewSources, answering: Mapping[str, str]
) -> list[KeptVersions]:
    """Record what a view reads; returns the tables that it stopped reading.

    Raises when a source is gone. `answering` says who consented to new sources.
    """
    before = await list_kept(tx, [view_id])
    await view_sources.record(tx, view_id, sources, answering)
    after = await list_kept(tx, [view_id])
    return [each for each in before if each not in after]


async def list_kept(tx: Transaction, view_ids: Collection[str]) -> list[KeptVersions]:
    """The folders of tables, and of the views themselves, with versions kept for one of these."""
    return [
        KeptVersions(view, row[0])
        for view in view_ids
        for row in await tx.fetch(
            "SELECT absolute(t.location) FROM view_sources s JOIN tables t ON t.id = s.source_id "
            "WHERE s.view_id = $1 UNION SELECT absolute(location) FROM tables WHERE id = $1",
            view,
        )
    ]


async def let_go(catalog: Catalog, kept: Sequence[KeptVersions]) -> None:
    """Release versions that were kept for views which stopped reading the tables."""
    for each in kept:
        try:
            await catalog.lake.run(_let_go, catalog.lake.place(each.location), each.view_id)
        except PenstockError as error:
            # A leftover tag does no harm, and the next sweep of the table finds it.
            log.warning("tags in %s are not removed: %s", each.location, error.message)


async def sweep_tags(catalog: Catalog, table: Table) -> None:
    """Release versions of a table that are kept for views which stopped reading it."""
    place = catalog.lake.place(table.location)
    tags = await catalog.lake.run(_list_tags, place)
    if tags:
        # Read after the tags: a view is recorded as a reader before it has a tag.
        readers = await view_sources.list_recorded_readers(catalog.database, table.id)
        await catalog.lake.run(_remove_strange, place, tags, [table.id, *readers])


def _list_tags(place: Place) -> set[str]:
    return view_notes.list_tags(place)


def _remove_strange(place: Place, tags: Collection[str], view_ids: Collection[str]) -> None:
    known = tuple(map(view_notes.prefix_of, view_ids))
    view_notes.remove_tags(place, [tag for tag in tags if not tag.startswith(known)])


def _let_go(place: Place, view_id: str) -> None:
    view_notes.remove_tags(place, view_notes.list_tags(place, view_id))


async def delete_records(tx: Transaction, table_id: str, reason: str) -> str | None:
    """Delete all records of a table; returns its location, or None when there is no such table."""
    for relation in TABLE_RECORDS:
        await tx.fetch(f"DELETE FROM {relation} WHERE table_id = $1", table_id)
    for relation in ("view_sources", "refresh_schedules", "view_definitions", "view_alterations"):
        await tx.fetch(f"DELETE FROM {relation} WHERE view_id = $1", table_id)
    await tx.fetch("DELETE FROM materialized_views WHERE id = $1", table_id)
    await jobs.cancel_for_table_in(tx, table_id, reason)
    row = await tx.fetch_one(
        "DELETE FROM tables WHERE id = $1 RETURNING absolute(location)", table_id
    )
    await tx.fetch("DELETE FROM objects WHERE id = $1", table_id)
    await grants.forget_in(tx, table_id)
    return None if row is None else str(row[0])


async def delete_iceberg_view(tx: Transaction, id: str) -> Row | None:
    """Delete the records of an Iceberg view; returns its folder, metadata file, text and place."""
    row = await tx.fetch_one(
        "DELETE FROM views WHERE id = $1 "
        "RETURNING absolute(folder), metadata_location, metadata, absolute(location)",
        id,
    )
    await tx.fetch("DELETE FROM objects WHERE id = $1", id)
    await grants.forget_in(tx, id)
    return row


async def keep(tx: Transaction, view_id: str) -> Callable[[Transaction], Awaitable[None]]:
    """Remember all records of a view; returns a step that restores them."""
    kept = {
        "materialized_views": (
            "id, kind, request, definition, owner, auto_refresh, target_lag_seconds, watermark, "
            "refreshed_at, created_at, edition",
            "id",
        ),
        "view_sources": (view_sources.COLUMNS, "view_id"),
        "refresh_schedules": ("view_id, expression, timezone, done_until", "view_id"),
        "view_definitions": (
            "view_id, edition, request, version, job_id, made_by, made_at",
            "view_id",
        ),
    }
    rows = {
        relation: await tx.fetch(f"SELECT {columns} FROM {relation} WHERE {key} = $1", view_id)
        for relation, (columns, key) in kept.items()
    }

    async def bring_back(tx: Transaction) -> None:
        for relation, (columns, _) in kept.items():
            places = ", ".join(f"${n + 1}" for n in range(columns.count(",") + 1))
            for row in rows[relation]:
                await tx.fetch(f"INSERT INTO {relation} ({columns}) VALUES ({places})", *row)

    return bring_back


async def list_named(tx: Transaction, ids: Sequence[str]) -> list[tuple[str, Identifier, str]]:
    """The ids, names and kinds of objects that are there, in the order of their names."""
    found = []
    for start in range(0, len(ids), AT_ONCE):
        some = ids[start : start + AT_ONCE]
        places = ", ".join(f"${n + 1}" for n in range(len(some)))
        found += await tx.fetch(
            f"SELECT id, namespace, name, kind FROM objects WHERE id IN ({places})", *some
        )
    named = [(row[0], (*from_path(row[1]), row[2]), row[3]) for row in found]
    return sorted(named, key=lambda each: each[1])
