"""Look up what the names in a query mean: tables, and Iceberg views with the names in their SQL.

A materialized view's own names keep the meaning that they had when it was made or altered. Names in
the SQL of an Iceberg view mean whatever has them now, as they do to everybody who reads that view.
"""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.iceberg_views import dialects, iceberg_views
from penstock.catalog.iceberg_views.iceberg_views import Edition
from penstock.catalog.names import tables
from penstock.catalog.names.meaning import MayRead, Meant, find_meant
from penstock.catalog.names.view_sources import InnerName, ViewSources
from penstock.catalog.statements.iceberg_sources import open_iceberg
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest
from penstock.lance.doors import lance
from penstock.model.identifiers import Identifier, from_path, show, to_path
from penstock.model.rights import ICEBERG_TABLE
from penstock.model.tables import MAIN
from penstock.sql.doors import queries, requests

NEAR = 3


@dataclass(frozen=True, slots=True)
class QuerySources:
    """The sources of a query, before any of them is opened."""

    # Ids of tables and Iceberg views, by the names in the query itself.
    names: Mapping[Identifier, str]
    # The names in the SQL of each Iceberg view, by its id.
    inner: Mapping[str, tuple[InnerName, ...]]
    # The SQL of each Iceberg view, by id, and everything that each reads, also through others.
    editions: Mapping[str, Edition]
    below: Mapping[str, frozenset[str]]
    # For each Iceberg view, its names that nothing has, and what each may mean.
    missing: Mapping[str, tuple[tuple[Identifier, ...], ...]]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of all tables and Iceberg views."""
        return frozenset(self.names.values()).union(*self.below.values())

    def to_record(self) -> ViewSources:
        """What is recorded of a view that reads them."""
        names = {to_path(name): id for name, id in self.names.items()}
        editions = {id: edition.id for id, edition in self.editions.items()}
        return ViewSources(names, editions, dict(self.inner))


@dataclass(slots=True)
class Lookup:
    """What the names in a query stand for, as far as they were looked up."""

    may_read: MayRead
    # The meanings that the query's own names have already, and the ids of all that it read before.
    known: Mapping[Identifier, str] = field(default_factory=dict)
    known_ids: Collection[str] = ()
    # Whether the query may read Iceberg tables, and the ids of those in it.
    reads_iceberg: bool = False
    iceberg: set[str] = field(default_factory=set)
    # The ids of all that it reads, by what these are called now, and by the query's own names.
    ids: dict[Identifier, str] = field(default_factory=dict)
    names: dict[Identifier, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    editions: dict[str, Edition] = field(default_factory=dict)
    # The names in each Iceberg view's own SQL, by its id, and what they mean.
    reads: "dict[str, tuple[requests.Reference, ...]]" = field(default_factory=dict)
    meanings: "dict[str, dict[requests.Reference, Identifier]]" = field(default_factory=dict)
    missing: "list[requests.Reference]" = field(default_factory=list)


async def look_up(catalog: Catalog, query: "requests.Query", found: Lookup) -> "requests.Query":
    """Look up all names, also those in Iceberg views; returns the query with their meanings."""
    own: dict[requests.Reference, Identifier] = {}
    views = list[Meant]()
    for reference in query.references:
        recalled = await _recall(catalog.database, reference, found.known)
        meant = await _search(catalog, reference, found) if recalled is None else recalled[1]
        if meant is not None:
            own[reference] = meant.identifier
            name = meant.identifier if recalled is None else recalled[0]
            found.names[name] = meant.id
            views += _take(meant, found)
    inner: dict[Identifier, Mapping[requests.Reference, Identifier]] = {}
    while views:
        view = views.pop(0)
        query = await _add_view(catalog, query, view, found)
        meanings = inner[view.identifier] = found.meanings[view.id] = {}
        for reference in found.reads[view.id]:
            meant = await _search(catalog, reference, found)
            if meant is not None:
                meanings[reference] = meant.identifier
                views += _take(meant, found)
    _check_views(inner)
    return query.bind(own, inner)


def _take(meant: Meant, found: Lookup) -> list[Meant]:
    """Take in what a name means; returns it if it is an Iceberg view that is new here."""
    if meant.identifier in found.ids:
        if found.ids[meant.identifier] != meant.id:
            raise ConcurrentCommit(
                f"{show(meant.identifier)} was renamed while the query was read", detail="retry"
            )
        return []
    if meant.kind == ICEBERG_TABLE:
        if not found.reads_iceberg:
            raise InvalidRequest(
                f"{show(meant.identifier)} is an Iceberg table, which only materialized views read "
                "here",
                detail="query it with an engine that is a client of the Iceberg protocol",
            )
        found.iceberg.add(meant.id)
    found.ids[meant.identifier] = meant.id
    return [meant] if meant.kind == iceberg_views.KIND else []


async def _recall(
    tx: Transaction, reference: "requests.Reference", known: Mapping[Identifier, str]
) -> tuple[Identifier, Meant] | None:
    """What a name stood for when it was looked up before, if that still exists."""
    folded = {_fold(name): name for name in known}
    for candidate in reference.candidates:
        name = candidate if candidate in known else folded.get(_fold(candidate))
        if name is not None:
            row = await tx.fetch_one(
                "SELECT namespace, name, kind FROM objects WHERE id = $1", known[name]
            )
            if row is not None:
                return name, Meant((*from_path(row[0]), row[1]), known[name], row[2])
    return None


async def _search(catalog: Catalog, reference: "requests.Reference", found: Lookup) -> Meant | None:
    """What a name stands for now."""
    candidates = reference.candidates
    meant = await find_meant(catalog.database, candidates, found.may_read, found.known_ids)
    if meant is None and reference not in found.missing:
        found.missing.append(reference)
    return meant


async def _add_view(
    catalog: Catalog, query: "requests.Query", meant: Meant, found: Lookup
) -> "requests.Query":
    view = await iceberg_views.get_by_id(catalog.database, meant.id)
    found.states[meant.id], found.editions[meant.id] = view.document.location, view.edition
    metadata = msgspec.json.decode(view.document.text)
    query = await catalog.workers.run(_add_sql, query, meant.identifier, metadata)
    found.reads[meant.id] = dict(query.views)[meant.identifier].references
    return query


def _add_sql(
    query: "requests.Query", name: Identifier, metadata: dict[str, Any]
) -> "requests.Query":
    dialect, sql, namespace, held = dialects.read_query(metadata)
    return queries.add_view(query, name, sql, dialect, namespace, held)


async def open_sources(
    catalog: Catalog, found: Lookup, version: int | None = None
) -> "dict[Identifier, requests.SourceTable]":
    """The tables among what was found, by what they are called now."""
    return {
        name: await (
            open_iceberg(catalog, id, version)
            if id in found.iceberg
            else open_source(catalog, id, version)
        )
        for name, id in found.ids.items()
        if id not in found.editions
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


def to_sources(found: Lookup) -> QuerySources:
    """What was found so far, which may be incomplete or contain a circle."""
    direct = {
        view: {found.ids[name] for name in meanings.values()}
        for view, meanings in found.meanings.items()
    }
    below: dict[str, frozenset[str]] = {}
    for view in found.editions:
        known, new = set[str](), [view]
        while new:
            more = direct.get(new.pop(), set())
            new += more - known
            known |= more
        below[view] = frozenset(known - {view})
    inner = {
        view: tuple(_to_inner(r, found.ids[name]) for r, name in meanings.items())
        for view, meanings in found.meanings.items()
    }
    missing = {
        view: tuple(tuple(filter(None, r.candidates)) for r in references if r in found.missing)
        for view, references in found.reads.items()
    }
    return QuerySources(found.names, inner, found.editions, below, missing)


def _to_inner(reference: "requests.Reference", id: str) -> InnerName:
    first, *others = (to_path(each) for each in reference.candidates if each)
    return InnerName(first, tuple(others), id)


def _check_views(reads: "Mapping[Identifier, Mapping[requests.Reference, Identifier]]") -> None:
    """Refuse Iceberg views that read each other in a circle."""
    try:
        TopologicalSorter({view: meant.values() for view, meant in reads.items()}).prepare()
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
