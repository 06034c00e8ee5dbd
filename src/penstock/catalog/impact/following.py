"""Dependents that follow a rename: the texts of their queries get the new name.

Only names change, and outputs keep theirs. Everything that can be refused is refused before the
rename; the records change in its transaction. Files of Iceberg views are written before it, and
removed if it fails.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import msgspec
from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_views import dialects
from penstock.catalog.iceberg_views import replace as view_replacing
from penstock.catalog.iceberg_views.iceberg_views import IcebergView
from penstock.catalog.iceberg_views.replace import Replacement
from penstock.catalog.impact import iceberg_readers
from penstock.catalog.impact.columns import ColumnReaders
from penstock.catalog.impact.iceberg_readers import NamedObject
from penstock.catalog.materialized_views import (
    definitions,
    materialized_views,
    pending_alterations,
)
from penstock.catalog.materialized_views.materialized_views import MaterializedView, SentDefinition
from penstock.catalog.names import dependents, tables, transactions, view_sources
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.versions import versions
from penstock.catalog.versions.commits import Undo
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest, PenstockError, TableInUse
from penstock.lance.write.view_tables import read_schema
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import Origin
from penstock.model.rights import VIEW
from penstock.model.tables import MAIN, Table
from penstock.model.views import Definition, FollowedRename
from penstock.sql.doors import queries, renaming, requests
from penstock.sql.results import Refusal, Tables

# So many renames back a view is refreshed by what changed; further back, in full.
MAX_FOLLOWED = 8


@dataclass(frozen=True, slots=True)
class Renamed:
    """A column of a table, and its new name."""

    table: Table
    old: str
    new: str

    def __str__(self) -> str:
        return f"column {self.old} of {self.table}"


@dataclass(frozen=True, slots=True)
class FollowingView:
    """A materialized view, and what it becomes."""

    view: MaterializedView
    asked: SentDefinition
    definition: Definition

    @property
    def is_own(self) -> bool:
        """Whether its own query changes, and not only an Iceberg view in that."""
        return self.asked != self.view.asked


@dataclass(frozen=True, slots=True)
class Followers:
    """All that follows a rename."""

    views: list[FollowingView] = field(default_factory=list)
    iceberg: list[Replacement] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [v.view.table.id for v in self.views] + [r.before.id for r in self.iceberg]


async def follow_name(
    catalog: Catalog,
    what: str,
    target: NamedObject,
    new: Identifier,
    views: Sequence[IcebergView],
    origin: Origin,
) -> list[Replacement]:
    """Prepare the Iceberg views that name a table or view to name it otherwise."""
    # First, so that nobody is told what is wrong with a view that they may not see.
    await dependents.check_owned(catalog.database, what, [view.id for view in views], origin)
    texts = [(view, await _rename_object(catalog, view, target, new)) for view in views]
    return await _prepare(catalog, texts)


async def follow_column(
    catalog: Catalog, renamed: Renamed, readers: ColumnReaders, origin: Origin
) -> Followers:
    """Prepare the views that read a column to read it under its new name."""
    direct = [view for view in readers.iceberg.values() if _names_table(view, renamed.table)]
    ids = [*readers.views, *(view.id for view in direct)]
    # First, so that nobody is told what is wrong with a view that they may not see.
    await dependents.check_owned(catalog.database, str(renamed), ids, origin)
    views = [await _follow_in_view(catalog, id, renamed) for id in readers.views]
    texts = [(view, await _rename_column(catalog, view, renamed)) for view in direct]
    prepared = await _prepare(catalog, [each for each in texts if each[1]])
    return Followers([each for each in views if each is not None], prepared)


async def record_in(tx: Transaction, what: str, followers: Followers, origin: Origin) -> Undo:
    """Record all that follows, in the transaction of the rename; returns how to undo it."""
    await dependents.check_owned(tx, what, followers.ids, origin)
    # The key of the request belongs to the rename.
    unkeyed = replace(origin, keys=())
    steps = [await _set_query(tx, each, unkeyed) for each in followers.views]
    for replacement in followers.iceberg:
        await view_replacing.swap_in(tx, replacement, unkeyed)

    async def undo(tx: Transaction) -> None:
        for step in steps:
            await step(tx)
        for replacement in followers.iceberg:
            back = Replacement(replacement.after, replacement.before)
            await view_replacing.swap_in(tx, back, unkeyed)

    return undo


async def _set_query(tx: Transaction, following: FollowingView, origin: Origin) -> Undo:
    """Make the new query the view's, as an alteration does, and keep the old one."""
    table, request = following.view.table, _encode(following.asked)
    await pending_alterations.check_none(tx, table)
    undo = await pending_alterations.remember(tx, table.id)
    edited = await tx.fetch_one(
        "UPDATE materialized_views SET request = $3, definition = $4, edition = edition + $5 "
        "WHERE id = $1 AND request = $2 RETURNING edition",
        *(table.id, _encode(following.view.asked), request, _encode(following.definition)),
        int(following.is_own),
    )
    if edited is None:
        raise ConcurrentCommit(f"view {table} was changed meanwhile", detail="retry")
    if not following.is_own:
        return undo
    head = await versions.find_head(tx, table.id, MAIN)
    await tx.fetch(
        "INSERT INTO view_definitions (view_id, edition, request, version, made_by, made_at) "
        "VALUES ($1, $2, $3, $4, $5, now_millis())",
        *(table.id, edited[0], request, 1 if head is None else head.version, origin.principal),
    )
    await pending_alterations.renew_queued(tx, table.id, following.definition, edited[0])
    await transactions.record(tx, "AlterMaterializedView", str(table), origin)
    return undo


async def _prepare(
    catalog: Catalog, texts: Sequence[tuple[IcebergView, Mapping[str, str]]]
) -> list[Replacement]:
    prepared: list[Replacement] = []
    try:
        for view, changed in texts:
            prepared.append(await view_replacing.prepare(catalog, view, changed))
    except PenstockError:
        await view_replacing.abandon(catalog, prepared)
        raise
    return prepared


async def _rename_object(
    catalog: Catalog, view: IcebergView, target: NamedObject, new: Identifier
) -> dict[str, str]:
    texts = {}
    for statement in iceberg_readers.list_statements(view):
        spellings = set()
        for name in iceberg_readers.find_spellings(statement, target.identifier):
            meant = await iceberg_readers.find_meant(catalog.database, name)
            if any(each.id == target.id for each in meant):
                spellings.add(name[0])
        if spellings:
            found = await catalog.workers.run(
                renaming.rename_table,
                *(statement.sql, statement.dialect, statement.namespace, statement.catalog),
                *(target.identifier, new, spellings),
            )
            texts[statement.dialect] = _take(found, show(view.identifier))
    return texts


async def _rename_column(catalog: Catalog, view: IcebergView, renamed: Renamed) -> dict[str, str]:
    """The texts of an Iceberg view that change."""
    metadata, texts = msgspec.json.decode(view.document.text), {}
    for each in iceberg_readers.list_statements(view):
        if not any(iceberg_readers.find_spellings(each, renamed.table.identifier)):
            continue
        known = await dialects.find_schemas(catalog, metadata, each.dialect, each.sql)
        found = await catalog.workers.run(
            renaming.rename_column,
            *(each.sql, each.dialect, known, each.namespace, each.catalog),
            *([renamed.table.identifier], renamed.old, renamed.new),
        )
        text = _take(found, show(view.identifier))
        if text != each.sql:
            texts[each.dialect] = text
    return texts


async def _follow_in_view(catalog: Catalog, id: str, renamed: Renamed) -> FollowingView | None:
    """A materialized view with the column's new name."""
    database = catalog.database
    table = await tables.find_by_id(database, id)
    if table is None:
        return None
    view = await materialized_views.load(database, table)
    sources = await view_sources.get_known(database, id)
    names = sources.names
    asked = await _rewrite(catalog, view, names, renamed)
    kinds = [kind for _, _, kind in await dependents.list_named(database, [*names.values()])]
    define = partial(
        definitions.define,
        catalog,
        table.namespace,
        may_read=reading_as(database, view.owner),
        known=sources,
        created=view.definition,
    )
    try:
        before = (await define(view.asked)).definition
    except InvalidRequest:
        # It cannot be refreshed as it is, so nothing is lost if it is computed in full.
        before = None
    definition = view.definition
    if asked != view.asked or VIEW not in kinds:
        try:
            amended = await define(asked, amend=lambda source: _amend(source, renamed))
        except InvalidRequest as error:
            raise _refuse(str(table), error.message) from error
        definition = amended.definition
    followed = _list_followed(view.definition.followed, before, renamed)
    return FollowingView(view, asked, structs.replace(definition, followed=followed))


def _list_followed(
    known: Sequence[FollowedRename], before: Definition | None, renamed: Renamed
) -> tuple[FollowedRename, ...]:
    """What a view was before its last renames, with the newest names, the newest last."""
    id, found = renamed.table.id, []
    for each in known:
        names = dict(each.names.get(id, {}))
        names[renamed.new] = names.pop(renamed.old, renamed.old)
        found.append(structs.replace(each, names={**each.names, id: names}))
    if before is not None:
        found.append(
            FollowedRename(
                before=structs.replace(before, followed=()),
                names={id: {renamed.new: renamed.old}},
            )
        )
    # Of two with the same digest both are right: equal names mean equal columns.
    return tuple({each.before.digest: each for each in found}.values())[-MAX_FOLLOWED:]


async def _rewrite(
    catalog: Catalog, view: MaterializedView, names: Mapping[Identifier, str], renamed: Renamed
) -> SentDefinition:
    """What the client sent, with the column's new name in its SQL."""
    try:
        form = await catalog.workers.run(
            queries.find_text, view.asked.source_query, view.table.namespace
        )
    except InvalidRequest as error:
        raise _refuse(str(view.table), error.message) from error
    if form is None:
        return view.asked
    sql, dialect, namespace, key = form
    own = [name for name, id in names.items() if id == renamed.table.id]
    if not await catalog.workers.run(_names_any, form, own):
        return view.asked
    known: Tables = {
        name: await dialects.find_columns_of(catalog, id) for name, id in names.items()
    }
    found = await catalog.workers.run(
        renaming.rename_column,
        *(sql, dialect, known, namespace, None),
        *(own, renamed.old, renamed.new),
        read_schema(view.definition).names,
    )
    text = _take(found, str(view.table))
    query = text
    if key:
        told = msgspec.json.decode(view.asked.source_query)
        query = msgspec.json.encode({**told, key: text}).decode()
    return structs.replace(
        view.asked, source_query=query, sql=None if view.asked.sql is None else text
    )


def _names_table(view: IcebergView, table: Table) -> bool:
    statements = iceberg_readers.list_statements(view)
    return any(any(iceberg_readers.find_spellings(s, table.identifier)) for s in statements)


def _names_any(form: "queries.QueryText", tables: Sequence[Identifier]) -> bool:
    """Whether a statement names one of some tables, and not only views over it."""
    statement = iceberg_readers.Statement(form.dialect, form.sql, form.namespace, None)
    return any(any(iceberg_readers.find_spellings(statement, table)) for table in tables)


def _amend(source: "requests.SourceTable", renamed: Renamed) -> "requests.SourceTable":
    if source.id != renamed.table.id:
        return source
    place = source.schema.get_field_index(renamed.old)
    field = source.schema.field(place).with_name(renamed.new)
    ids = {renamed.new if name == renamed.old else name: id for name, id in source.fields.items()}
    return structs.replace(source, schema=source.schema.set(place, field), open=None, fields=ids)


def _take(found: str | Refusal, view: str) -> str:
    if isinstance(found, Refusal):
        raise _refuse(view, found.reason)
    return found


def _refuse(view: str, reason: str) -> TableInUse:
    return TableInUse(
        f"{view} cannot follow the new name: {reason}",
        detail="change or drop it first, or use ?force=true to let it break",
    )


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
