"""Look up what the names in a query mean: tables, and Iceberg views with the names in their SQL."""

import difflib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_views import dialects, iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import Edition
from penstock.catalog.names import tables
from penstock.catalog.statements.iceberg_sources import open_iceberg
from penstock.errors import InvalidRequest
from penstock.lance.doors import lance
from penstock.model.identifiers import Identifier, from_path, show, to_path
from penstock.model.rights import ICEBERG_TABLE, READ, TABLE, Need
from penstock.model.tables import MAIN
from penstock.sql.doors import queries, requests

MAX_REFERENCES = 100
NEAR = 3

# Whether whoever asks may read a table or view.
MayRead = Callable[[Identifier], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class QuerySources:
    """The sources of a query, before any of them is opened."""

    # Ids of tables and Iceberg views, by their names in the query.
    names: Mapping[Identifier, str]
    # The SQL of each Iceberg view, by id, and everything that each reads, also through others.
    editions: Mapping[str, Edition]
    below: Mapping[str, frozenset[str]]
    # For each Iceberg view, its names that nothing has, and what each may mean.
    missing: Mapping[str, tuple[tuple[Identifier, ...], ...]]


@dataclass(slots=True)
class Lookup:
    """What the names in a query stand for, as far as they were looked up."""

    known: Mapping[Identifier, str]
    may_read: MayRead
    names: dict[Identifier, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    editions: dict[str, Edition] = field(default_factory=dict)
    # Whether the query may read Iceberg tables, and the ids of those in it.
    reads_iceberg: bool = False
    iceberg: set[str] = field(default_factory=set)
    # The names in each Iceberg view's own SQL, by its id.
    reads: "dict[str, tuple[requests.Reference, ...]]" = field(default_factory=dict)
    meant: "dict[requests.Reference, Identifier]" = field(default_factory=dict)
    missing: "list[requests.Reference]" = field(default_factory=list)


async def look_up(catalog: Catalog, query: "requests.Query", found: Lookup) -> "requests.Query":
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
    catalog: Catalog, query: "requests.Query", reference: "requests.Reference", found: Lookup
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
    if kind == ICEBERG_TABLE:
        if not found.reads_iceberg:
            raise InvalidRequest(
                f"{show(name)} is an Iceberg table, which only materialized views read here",
                detail="query it with an engine that is a client of the Iceberg protocol",
            )
        found.iceberg.add(id)
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
            "WHERE namespace IN ($1, $2) AND lower(name) = lower($3) "
            "AND kind <> 'function' "
            # However many are alike, the exact one is among them.
            "ORDER BY CASE WHEN namespace = $1 AND name = $3 THEN 0 ELSE 1 END LIMIT 10",
            *(to_path(candidate[:-1]), to_path(candidate[:-1]).lower(), candidate[-1]),
        )
        named = [((*from_path(row[0]), row[1]), row[2], row[3]) for row in rows]
        places = [place for place in named if await may_read(place[0])]
        exact = [place for place in places if place[0] == candidate]
        if exact or len(places) == 1:
            return (exact or places)[0]
    return None


async def _add_view(
    catalog: Catalog, query: "requests.Query", name: Identifier, id: str, found: Lookup
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


async def open_sources(
    catalog: Catalog, found: Lookup, version: int | None = None
) -> "dict[Identifier, requests.SourceTable]":
    """The tables among what was found, by their names."""
    ids = {name: id for name, id in found.names.items() if id not in found.editions}
    return {
        name: await (
            open_iceberg(catalog, id, version)
            if id in found.iceberg
            else open_source(catalog, id, version)
        )
        for name, id in ids.items()
    }


async def open_source(catalog: Catalog, id: str, version: int | None) -> "requests.SourceTable":
    table = await tables.find_by_id(catalog.database, id)
    if table is None:
        raise InvalidRequest("a table that the query reads was dropped meanwhile", detail="retry")

    def work(dataset: "lance.LanceDataset") -> "requests.SourceTable":
        return requests.SourceTable(
            id=id,
            identifier=table.identifier,
            schema=dataset.schema,
            open=lambda: dataset,
            fields={field.name(): field.id() for field in dataset.lance_schema.fields()},
            has_stable_row_ids=dataset.has_stable_row_ids,
            version=dataset.version,
        )

    return await datasets.read(catalog, table, MAIN, version, work)


def reading_as(catalog: Catalog, grantees: Sequence[str]) -> MayRead:
    """What holders of these grants may read; everything where authentication was off."""

    async def may_read(id: Identifier) -> bool:
        return await grants.may_in(catalog.database, grantees, Need(READ, TABLE, id))

    return may_read


def to_sources(found: Lookup) -> QuerySources:
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


def _check_views(query: "requests.Query", found: Lookup) -> None:
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


async def find_near(catalog: Catalog, reference: "requests.Reference", may_read: MayRead) -> str:
    """A hint with similar names, for a name that nothing has."""
    near = list[str]()
    for candidate in filter(None, reference.candidates):
        rows = await catalog.database.fetch(
            "SELECT name FROM objects WHERE namespace = $1 AND kind <> 'function' "
            "ORDER BY name LIMIT 1000",
            to_path(candidate[:-1]),
        )
        names = {row[0].lower(): row[0] for row in rows}
        close = difflib.get_close_matches(candidate[-1].lower(), names, NEAR)
        meant = [(*candidate[:-1], names[name]) for name in close]
        near += [show(name) for name in meant if await may_read(name)]
    return "there is " + ", ".join(dict.fromkeys(near)) if near else ""


def _fold(name: Identifier) -> Identifier:
    return tuple(part.lower() for part in name)
