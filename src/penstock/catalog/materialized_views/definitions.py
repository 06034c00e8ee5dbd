"""Make a definition from what a client sent: look up the names in the query.

The names in it are looked up when a view is created, and keep their meaning when tables are renamed
later. Names in Iceberg views are looked up each time.
"""

import contextlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views.materialized_views import SentDefinition
from penstock.catalog.names import dependents
from penstock.catalog.names.meaning import MayRead
from penstock.catalog.names.view_sources import NOTHING_KNOWN, KnownSources
from penstock.catalog.statements import analyses
from penstock.catalog.statements.lookup import (
    Lookup,
    QuerySources,
    find_near,
    look_up,
    open_sources,
    to_sources,
)
from penstock.errors import InvalidRequest, TypesUnknown
from penstock.lance.errors import translated
from penstock.model.identifiers import Identifier
from penstock.model.udtfs import Udtf, read_udtf
from penstock.model.views import Definition
from penstock.sql.doors import define as define_door
from penstock.sql.doors import queries, requests, schemas, untyped

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
    # As they were when it was made.
    tables: "tuple[requests.SourceTable, ...]"
    # How often the view had been altered.
    edition: int = 0

    @property
    def without_row_ids(self) -> list[Identifier]:
        """The tables whose rows cannot be told apart from one version to the next."""
        return [table.identifier for table in self.tables if not table.has_stable_row_ids]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its tables and Iceberg views."""
        return self.reading.ids


async def define(
    catalog: Catalog,
    namespace: Identifier,
    asked: SentDefinition,
    *,
    may_read: MayRead,
    known: KnownSources = NOTHING_KNOWN,
    created: Definition | None = None,
    before: Definition | None = None,
    version: int | None = None,
    check: Check | None = None,
    cluster: str | None = None,
    amend: "Callable[[requests.SourceTable], requests.SourceTable] | None" = None,
) -> ResolvedView:
    """The definition of a view now, optionally with its one table at an older version.

    `known` is what the view was recorded to read, `created` is the definition since the view's
    creation or last alteration, `before` the one that an alteration replaces. Objects that may not
    be read count as missing. Where only Spark knows a type, a runner of the cluster is asked.
    `amend` shows tables as they will be.
    """
    run = catalog.workers.run
    query, udtf = await run(_read, asked, namespace)
    found = Lookup(may_read, known.names, known.ids, reads_iceberg=True)
    try:
        query = await look_up(catalog, query, found)
    except InvalidRequest:
        # Only those who may read a source learn what is wrong with it.
        if check is not None:
            await check(to_sources(found))
        raise
    reading = to_sources(found)
    if check is not None:
        await check(reading)
    count = len(set(found.ids.values()) - found.editions.keys())
    if version is not None and count != 1:
        raise InvalidRequest(
            f"src_version is {version}, but the view reads {count} tables",
            detail="leave it out: it is the version of a view's only table",
        )
    opened = await open_sources(catalog, found, version)
    if amend is not None:
        opened = {name: amend(each) for name, each in opened.items()}
    request = partial(_make_request, asked, query, udtf, created, before)
    try:
        definition = await _define(catalog, request, opened, cluster)
    except InvalidRequest as error:
        # Whoever refreshes a view need not be able to see what its creator may read.
        if not found.missing or created is not None:
            raise
        near = await find_near(catalog, found.missing[0], may_read)
        raise InvalidRequest(error.message, detail=near or error.detail) from error
    return ResolvedView(
        definition,
        query,
        udtf,
        reading,
        found.states,
        tuple(opened.values()),
    )


async def read(
    catalog: Catalog,
    namespace: Identifier,
    asked: SentDefinition,
    *,
    may_read: MayRead,
    known: KnownSources,
) -> QuerySources:
    """The sources of a view now, as far as they can be found; opens nothing."""
    query, _ = await catalog.workers.run(_read, asked, namespace)
    found = Lookup(may_read, known.names, known.ids, reads_iceberg=True)
    with contextlib.suppress(InvalidRequest):
        await look_up(catalog, query, found)
    return to_sources(found)


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


async def _define(
    catalog: Catalog,
    request: "Callable[..., requests.ViewRequest]",
    found: "Mapping[Identifier, requests.SourceTable]",
    cluster: str | None,
) -> Definition:
    """Define the view, with the help of a runner's Spark where only that knows a type."""

    def define(typed: str | None = None) -> Definition:
        with translated():
            return define_door.define(request(typed), found)

    try:
        return await catalog.workers.run(define)
    except TypesUnknown as unknown:
        with_types = await catalog.workers.run(lambda: untyped.read_untyped(request(), found))
        if with_types is None:
            raise
        typed = await analyses.find_types(catalog, with_types, unknown, cluster)
    return await catalog.workers.run(define, typed)


def _make_request(
    asked: SentDefinition,
    query: "requests.Query",
    udtf: Udtf | None,
    created: Definition | None,
    before: Definition | None,
    typed: str | None = None,
) -> "requests.ViewRequest":
    def read(schema: str | None) -> Any:
        return None if schema is None else schemas.read_schema(schema)

    return requests.ViewRequest(
        kind=asked.kind,
        query=query,
        output_schema=read(asked.output_schema),
        udtf=udtf,
        created=read(None if created is None else created.schema),
        before=read(None if before is None else before.schema),
        inherited=asked.inherited,
        typed=read(typed),
    )
