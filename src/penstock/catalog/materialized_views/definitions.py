"""Make a definition from what a client sent: look up the names in the query.

Names are looked up when a view is created, and keep their meaning when tables are renamed later;
only names that are new in an Iceberg view are looked up again.
"""

import contextlib
import difflib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_views import dialects, iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import Edition
from penstock.catalog.materialized_views.materialized_views import SentDefinition
from penstock.catalog.names import dependents, tables
from penstock.errors import InvalidRequest
from penstock.lance.doors import lance
from penstock.lance.errors import translated
from penstock.model.identifiers import Identifier, from_path, show, to_path
from penstock.model.rights import READ, TABLE, Need
from penstock.model.tables import MAIN
from penstock.model.udtfs import Udtf, read_udtf
from penstock.model.views import Definition
from penstock.sql.doors import define as define_door
from penstock.sql.doors import queries, requests, schemas

MAX_REFERENCES = 100
NEAR = 3

# Whether the view's creator may read a table or view.
MayRead = Callable[[Identifier], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class QuerySources:
    """The sources of a view's query, before any of them is opened."""

    # Ids of tables and Iceberg views, by their names in the query.
    names: Mapping[Identifier, str]
    # The SQL of each Iceberg view, by id, and everything that each reads, also through others.
    editions: Mapping[str, Edition]
    below: Mapping[str, frozenset[str]]
    # For each Iceberg view, its names that nothing has, and what each may mean.
    missing: Mapping[str, tuple[tuple[Identifier, ...], ...]]


# Refuses a query before any of its sources is opened.
Check = Callable[[QuerySources], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ResolvedView:
    """A definition, and what else was found while making it."""

    definition: Definition
    query: "requests.Query"
    udtf: Udtf | None
    reading: QuerySources
    # The metadata files of Iceberg views, by id.
    states: Mapping[str, str]
    without_row_ids: tuple[Identifier, ...]

    @property
    def sources(self) -> Mapping[Identifier, str]:
        """Ids of tables and Iceberg views, by their names in the query."""
        return self.reading.names


@dataclass(slots=True)
class _Search:
    """What the names in a query stand for, as far as they were looked up."""

    known: Mapping[Identifier, str]
    may_read: MayRead
    names: dict[Identifier, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    editions: dict[str, Edition] = field(default_factory=dict)
    # The names in each Iceberg view's own SQL, by its id.
    reads: "dict[str, tuple[requests.Reference, ...]]" = field(default_factory=dict)
    meant: "dict[requests.Reference, Identifier]" = field(default_factory=dict)
    missing: "list[requests.Reference]" = field(default_factory=list)


async def define(
    catalog: Catalog,
    namespace: Identifier,
    asked: SentDefinition,
    *,
    may_read: MayRead,
    known: Mapping[Identifier, str] | None = None,
    created: Definition | None = None,
    version: int | None = None,
    check: Check | None = None,
) -> ResolvedView:
    """The definition of a view now, optionally with its one table at an older version.

    `known` are names that were looked up before, `created` is the first definition. Objects that
    may not be read count as missing.
    """
    run = catalog.workers.run
    query, udtf = await run(_read, asked, namespace)
    found = _Search(known or {}, may_read)
    try:
        query = await _look_up(catalog, query, found)
    except InvalidRequest:
        # Only those who may read a source learn what is wrong with it.
        if check is not None:
            await check(_to_reading(found))
        raise
    reading = _to_reading(found)
    if check is not None:
        await check(reading)
    ids = {name: id for name, id in found.names.items() if id not in found.editions}
    if version is not None and len(ids) != 1:
        raise InvalidRequest(
            f"src_version is {version}, but the view reads {len(ids)} tables",
            detail="leave it out: it is the version of a view's only table",
        )
    opened = {name: await _open(catalog, id, version) for name, id in ids.items()}
    try:
        definition = await run(_define, asked, query, udtf, opened, created)
    except InvalidRequest as error:
        # Whoever refreshes a view need not be able to see what its creator may read.
        if not found.missing or created is not None:
            raise
        near = await _find_near(catalog, found.missing[0], may_read)
        raise InvalidRequest(error.message, detail=near or error.detail) from error
    return ResolvedView(
        definition,
        query,
        udtf,
        reading,
        found.states,
        tuple(t.identifier for t in opened.values() if not t.has_stable_row_ids),
    )


async def read(
    catalog: Catalog,
    namespace: Identifier,
    asked: SentDefinition,
    *,
    may_read: MayRead,
    known: Mapping[Identifier, str],
) -> QuerySources:
    """The sources of a view now, as far as they can be found; opens nothing."""
    query, _ = await catalog.workers.run(_read, asked, namespace)
    found = _Search(known, may_read)
    with contextlib.suppress(InvalidRequest):
        await _look_up(catalog, query, found)
    return _to_reading(found)


def reading_as(catalog: Catalog, grantees: Sequence[str]) -> MayRead:
    """What holders of these grants may read; everything where authentication was off."""

    async def may_read(id: Identifier) -> bool:
        return await grants.may_in(catalog.database, grantees, Need(READ, TABLE, id))

    return may_read


async def check_acyclic(catalog: Catalog, table_id: str, sources: Collection[str]) -> None:
    """Refuse sources that are made from the view itself."""
    below = await catalog.database.read(dependents.find_sources, sources)
    if table_id in below or table_id in sources:
        raise InvalidRequest(
            "the view reads itself, by way of what it is made from",
            detail="change the Iceberg view, or the view, that closes the circle",
        )


def _read(asked: SentDefinition, namespace: Identifier) -> "tuple[requests.Query, Udtf | None]":
    # In a thread, because the first of these loads sqlglot.
    return queries.find_references(asked.source_query, namespace), read_udtf(
        asked.kind, asked.udtf_spec
    )


def _define(
    asked: SentDefinition,
    query: "requests.Query",
    udtf: Udtf | None,
    found: "Mapping[Identifier, requests.SourceTable]",
    created: Definition | None,
) -> Definition:
    wanted, before = asked.output_schema, None if created is None else created.schema
    with translated():
        request = requests.ViewRequest(
            kind=asked.kind,
            query=query,
            output_schema=None if wanted is None else schemas.read_schema(wanted),
            udtf=udtf,
            created=None if before is None else schemas.read_schema(before),
        )
        return define_door.define(request, found)


async def _look_up(catalog: Catalog, query: "requests.Query", found: _Search) -> "requests.Query":
    """Look up all names, including those in Iceberg views."""
    while new := [r for r in query.references if r not in found.meant and r not in found.missing]:
        if len(found.meant) + len(new) > MAX_REFERENCES:
            raise InvalidRequest(
                f"the query reads more than {MAX_REFERENCES} tables",
                detail="make it of several views",
            )
        for reference in new:
            query = await _find(catalog, query, reference, found)
    _check_views(query, found)
    return query


async def _find(
    catalog: Catalog, query: "requests.Query", reference: "requests.Reference", found: _Search
) -> "requests.Query":
    place = await _recall(catalog, reference, found.known)
    place = place or await _search(catalog, reference, found.may_read)
    if place is None:
        found.missing.append(reference)
        return query
    name, id, kind = place
    found.meant[reference] = name
    if name in found.names:
        return query
    found.names[name] = id
    return query if kind != iceberg_views.KIND else await _add_view(catalog, query, name, id, found)


async def _recall(
    catalog: Catalog, reference: "requests.Reference", known: Mapping[Identifier, str]
) -> tuple[Identifier, str, str] | None:
    """What a name stood for when it was looked up before, if that still exists."""
    folded = {_fold(name): name for name in known}
    for candidate in reference.candidates:
        name = candidate if candidate in known else folded.get(_fold(candidate))
        if name is not None:
            row = await catalog.database.fetch_one(
                "SELECT kind FROM objects WHERE id = $1", known[name]
            )
            if row is not None:
                return name, known[name], row[0]
    return None


async def _search(
    catalog: Catalog, reference: "requests.Reference", may_read: MayRead
) -> tuple[Identifier, str, str] | None:
    """Look up a name: an exact match, else the only one that differs just in case."""
    for candidate in reference.candidates:
        if not candidate:
            continue
        rows = await catalog.database.fetch(
            "SELECT namespace, name, id, kind FROM objects "
            "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) LIMIT 10",
            *(to_path(candidate[:-1]), to_path(candidate[:-1]).lower(), candidate[-1]),
        )
        named = [((*from_path(row[0]), row[1]), row[2], row[3]) for row in rows]
        places = [place for place in named if await may_read(place[0])]
        exact = [place for place in places if place[0] == candidate]
        if exact or len(places) == 1:
            return (exact or places)[0]
    return None


async def _add_view(
    catalog: Catalog, query: "requests.Query", name: Identifier, id: str, found: _Search
) -> "requests.Query":
    view = await iceberg_views.get_by_id(catalog.database, id)
    found.states[id], found.editions[id] = view.document.location, view.edition
    metadata = msgspec.json.decode(view.document.text)
    query = await catalog.workers.run(_add_sql, query, name, metadata)
    found.reads[id] = dict(query.views)[name].references
    return query


def _add_sql(
    query: "requests.Query", name: Identifier, metadata: dict[str, Any]
) -> "requests.Query":
    dialect, sql, namespace, held = dialects.read_query(metadata)
    return queries.add_view(query, name, sql, dialect, namespace, held)


async def _open(catalog: Catalog, id: str, version: int | None) -> "requests.SourceTable":
    table = await tables.find_by_id(catalog.database, id)
    if table is None:
        raise InvalidRequest("a table that the view reads was dropped meanwhile", detail="retry")

    def work(dataset: "lance.LanceDataset") -> "requests.SourceTable":
        return requests.SourceTable(
            id=id,
            identifier=table.identifier,
            schema=dataset.schema,
            open=lambda: dataset,
            has_stable_row_ids=dataset.has_stable_row_ids,
        )

    return await datasets.read(catalog, table, MAIN, version, work)


def _to_reading(found: _Search) -> QuerySources:
    """What was found so far, which may be incomplete or contain a circle."""
    below: dict[str, frozenset[str]] = {}
    for view in found.editions:
        known, new = set[str](), [view]
        while new:
            references = found.reads.get(new.pop(), ())
            direct = {found.names[found.meant[r]] for r in references if r in found.meant}
            new += direct - known
            known |= direct
        below[view] = frozenset(known - {view})
    missing = {
        view: tuple(tuple(filter(None, r.candidates)) for r in references if r in found.missing)
        for view, references in found.reads.items()
    }
    return QuerySources(found.names, found.editions, below, missing)


def _check_views(query: "requests.Query", found: _Search) -> None:
    """Refuse Iceberg views that read each other in a circle."""
    reads = {
        name: [found.meant[r] for r in statement.references if r in found.meant]
        for name, statement in query.views
    }
    try:
        TopologicalSorter(reads).prepare()
    except CycleError as error:
        circle = ", ".join(show(name) for name in error.args[1])
        raise InvalidRequest(
            f"views read each other in a circle: {circle}", detail="change one of these views"
        ) from error


async def _find_near(catalog: Catalog, reference: "requests.Reference", may_read: MayRead) -> str:
    """A hint with similar names, for a name that nothing has."""
    near = list[str]()
    for candidate in filter(None, reference.candidates):
        rows = await catalog.database.fetch(
            "SELECT name FROM objects WHERE namespace = $1 ORDER BY name LIMIT 1000",
            to_path(candidate[:-1]),
        )
        names = {row[0].lower(): row[0] for row in rows}
        close = difflib.get_close_matches(candidate[-1].lower(), names, NEAR)
        meant = [(*candidate[:-1], names[name]) for name in close]
        near += [show(name) for name in meant if await may_read(name)]
    return "there is " + ", ".join(dict.fromkeys(near)) if near else ""


def _fold(name: Identifier) -> Identifier:
    return tuple(part.lower() for part in name)
