"""The records of materialized views, beside their tables.

A record holds what the client sent. The definition is made anew whenever it is needed, because the
tables that the query reads may change, and so may the Iceberg views in it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views.cron import Schedule
from penstock.catalog.names import dependents, namespaces, tables, view_sources
from penstock.catalog.names.view_sources import MovedName, ViewSources
from penstock.database.interface import Row, Transaction
from penstock.errors import Forbidden, InvalidTableState, TableInUse
from penstock.lance.columns.fields import parse_path
from penstock.lance.write.view_tables import read_schema
from penstock.model.identifiers import Identifier, from_path, show, to_path
from penstock.model.paging import Page, PageRequest, cut_page
from penstock.model.rights import READ, Need
from penstock.model.tables import MAIN, Table
from penstock.model.views import Definition, Kind, Watermark

COLUMNS = (
    "m.kind, m.request, m.definition, m.auto_refresh, m.target_lag_seconds, m.watermark, "
    "m.refreshed_at, m.created_at, m.owner, m.edition, r.expression, r.timezone, r.done_until"
)
RELATIONS = "materialized_views m LEFT JOIN refresh_schedules r ON r.view_id = m.id"


class SentDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The definition of a view as a client sent it."""

    kind: Kind
    source_query: str
    output_schema: str | None = None
    udtf_spec: dict[str, Any] | None = None
    # Of a chunker's view without output_schema: the query's columns that it has.
    inherited: tuple[str, ...] | None = None
    # Set when another client's own kind of body was sent; it is shown in the same form again.
    sql: str | None = None


@dataclass(frozen=True, slots=True)
class MaterializedView:
    """A materialized view: its table, what the client sent, and its current state."""

    table: Table
    asked: SentDefinition
    # As of the view's creation, or of its last alteration.
    definition: Definition
    auto_refresh: bool
    target_lag_seconds: int | None
    watermark: Watermark | None
    refreshed_at: int | None
    created_at: int
    # The names under which its creator holds grants; none where authentication was off.
    owner: tuple[str, ...]
    schedule: Schedule | None = None
    # The ticks of its schedule up to this moment are done.
    schedule_done_until: int | None = None
    # How often it was altered.
    edition: int = 0


@dataclass(frozen=True, slots=True)
class SourceState:
    """A source, and how it compares to what the view has of it."""

    id: str
    # Its name now.
    identifier: Identifier
    # The newest version of a Lance table.
    head: int | None
    # Whether it has changed since the last refresh; None when there was none.
    is_ahead: bool | None
    # Of an Iceberg view: the consented SQL, and the current SQL. Of a name in one that stands for
    # something else: what was consented to, and what it is now.
    consented: str = ""
    edition: str = ""
    # Whether it is a materialized view itself.
    is_view: bool = False


async def get(tx: Transaction, id: Identifier) -> MaterializedView:
    """Get the view, or raise the error that says what is wrong with its id."""
    table = await tables.get(tx, id)
    if not table.is_view:
        raise InvalidTableState(
            f"{show(id)} is a table, not a materialized view", detail="check the view's id"
        )
    return await load(tx, table)


async def load(tx: Transaction, table: Table) -> MaterializedView:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM {RELATIONS} WHERE m.id = $1", table.id)
    if row is None:
        raise tables.missing(table.identifier)
    return to_view(table, row)


async def check_columns(tx: Transaction, table: Table, branch: str, paths: Sequence[str]) -> None:
    """Refuse to change columns that the view's query gives; users' own columns may change.

    On branches, rows are not a refresh's business.
    """
    if not table.is_view or branch != MAIN:
        return
    view = await load(tx, table)
    own = {name.lower() for name in read_schema(view.definition).names}
    for path in paths:
        if parse_path(path)[0].lower() in own:
            raise InvalidTableState(
                f"column {path} of {table} is what the materialized view's query gives",
                detail="alter the view's query instead; refresh fills it",
            )


async def insert_in(tx: Transaction, table: Table, view: "NewView") -> None:
    """Record a view, in the transaction that creates its table."""
    await tx.fetch(
        "INSERT INTO materialized_views (id, kind, request, definition, owner, auto_refresh, "
        "target_lag_seconds, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, now_millis())",
        *(table.id, view.asked.kind, _encode(view.asked), _encode(view.definition)),
        *(_encode(view.owner), int(view.auto_refresh), view.target_lag_seconds),
    )
    if view.schedule is not None:
        await set_schedule_in(tx, table.id, view.schedule)
    by = view.owner[0] if view.owner else ""
    await tx.fetch(
        "INSERT INTO view_definitions (view_id, edition, request, version, made_by, made_at) "
        "VALUES ($1, 0, $2, 1, $3, now_millis())",
        *(table.id, _encode(view.asked), by),
    )
    answering = dict.fromkeys(view.sources.ids, by)
    await dependents.record(tx, table.id, view.sources, answering)


@dataclass(frozen=True, slots=True)
class NewView:
    """A view to record."""

    asked: SentDefinition
    definition: Definition
    sources: ViewSources
    owner: tuple[str, ...] = ()
    auto_refresh: bool = False
    target_lag_seconds: int | None = None
    schedule: Schedule | None = None


async def set_schedule_in(tx: Transaction, view_id: str, schedule: Schedule | None) -> None:
    """Give a view a schedule, whose ticks count from now on, or end the one that it has."""
    await tx.fetch("DELETE FROM refresh_schedules WHERE view_id = $1", view_id)
    if schedule is not None:
        await tx.fetch(
            "INSERT INTO refresh_schedules (view_id, expression, timezone, done_until) "
            "VALUES ($1, $2, $3, now_millis())",
            *(view_id, schedule.expression, schedule.timezone),
        )


async def list_names(
    catalog: Catalog, namespace: Identifier, page: PageRequest, only: Sequence[str] | None = None
) -> Page[str]:
    """The names of the views directly in a namespace that these grantees may see."""
    rows = await catalog.database.fetch(
        "SELECT o.name FROM objects o JOIN materialized_views m ON m.id = o.id "
        f"WHERE o.namespace = $1 AND o.name > $2 {grants.seen(only, 4)} ORDER BY o.name LIMIT $3",
        *(to_path(namespace), page.after or "", page.limit + 1),
        *(only or ()),
    )
    names = [row[0] for row in rows]
    if not names:
        await namespaces.get(catalog.database, namespace)
    return cut_page(page, names, names)


async def list_sources(tx: Transaction, view: MaterializedView) -> list[SourceState]:
    """The states of a view's sources, as far as the catalog knows without reading storage.

    Names in its Iceberg views that stand for something else since are sources of their own.
    """
    rows = await tx.fetch(
        "SELECT DISTINCT s.source_id, o.namespace, o.name, s.state, v.metadata_location, "
        "s.edition, v.edited_in, (SELECT max(t.version) FROM table_versions t "
        "WHERE t.table_id = s.source_id AND t.branch = $2), m.id IS NOT NULL, "
        "i.uuid, i.rows_snapshot, s.reader <> '' "
        "FROM view_sources s JOIN objects o ON o.id = s.source_id "
        "LEFT JOIN materialized_views m ON m.id = s.source_id "
        "LEFT JOIN iceberg_tables i ON i.id = s.source_id "
        "LEFT JOIN views v ON v.id = s.source_id WHERE s.view_id = $1 "
        "ORDER BY o.namespace, o.name",
        *(view.table.id, MAIN),
    )
    found: dict[str, SourceState] = {}
    for row in rows:
        state = _to_state(row, view.watermark)
        # One that is read in several ways is ahead if one of them has moved on.
        if state.id not in found or state.is_ahead:
            found[state.id] = state
    moved = [
        _to_moved_state(each, view.watermark)
        for each in await view_sources.find_moved(tx, view.table.id, view.owner)
    ]
    return [*found.values(), *moved]


async def check_sources(tx: Transaction, owner: Sequence[str], ids: Collection[str]) -> None:
    """Refuse a view whose owner may no longer read all of its sources."""
    for id in sorted(ids) if owner else ():
        row = await tx.fetch_one("SELECT namespace, name, kind FROM objects WHERE id = $1", id)
        if row is None:
            raise TableInUse("a table that the view reads was dropped meanwhile", detail="retry")
        need = Need(READ, row[2], (*from_path(row[0]), row[1]))
        if not await grants.may_in(tx, owner, need):
            raise Forbidden(
                f"the view reads with the rights of {owner[0]}, who lacks reader on {need}",
                detail="ask an owner to grant it, or create the view anew",
            )


def is_behind(view: MaterializedView, sources: Sequence[SourceState]) -> bool:
    """Whether a refresh might find something to do; ignores what its sources miss themselves."""
    return view.watermark is None or any(source.is_ahead for source in sources)


def to_view(table: Table, row: Row) -> MaterializedView:
    _, request, definition, auto_refresh, lag, watermark, refreshed_at, created_at, *more = row
    owner, edition, expression, timezone, done_until = more
    return MaterializedView(
        table,
        msgspec.json.decode(request, type=SentDefinition),
        msgspec.json.decode(definition, type=Definition),
        bool(auto_refresh),
        lag,
        None if watermark is None else msgspec.json.decode(watermark, type=Watermark),
        refreshed_at,
        created_at,
        msgspec.json.decode(owner, type=tuple[str, ...]),
        None if expression is None else Schedule(expression, timezone),
        done_until,
        edition,
    )


def _to_state(row: Row, watermark: Watermark | None) -> SourceState:
    id, namespace, name, state, metadata_location, consented, edition, head, is_view, *rest = row
    uuid, snapshot, is_inner = rest
    identifier = (*from_path(namespace), name)
    editions = (consented, edition or "")
    if watermark is None:
        return SourceState(id, identifier, head, None, *editions, is_view=bool(is_view))
    if metadata_location is not None:
        return SourceState(id, identifier, None, state != metadata_location, *editions)
    # What a name in an Iceberg view has come to mean is not what the view is made from.
    is_other = bool(is_inner) and state != id
    if uuid is not None:
        known = watermark.versions.get(id), watermark.transactions.get(id)
        return SourceState(id, identifier, None, is_other or (snapshot, uuid) != known)
    # A source that a replaced Iceberg view has just added has no version in the watermark.
    is_ahead = is_other or (head or 0) != watermark.versions.get(id)
    return SourceState(id, identifier, head, is_ahead, is_view=bool(is_view))


def _to_moved_state(moved: MovedName, watermark: Watermark | None) -> SourceState:
    now = "" if moved.now is None else moved.now.id
    identifier = moved.name.candidates[0] if moved.now is None else moved.now.identifier
    is_ahead = None if watermark is None else True
    return SourceState(now, identifier, None, is_ahead, moved.name.source, now)


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
