"""Request, explain and record refreshes of materialized views."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_code, functions
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.materialized_views import (
    consents,
    definitions,
    freshness,
    materialized_views,
)
from penstock.catalog.materialized_views.definitions import Check, ResolvedView
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.names import dependents, idempotency, tables, view_sources
from penstock.catalog.names.dependents import KeptVersions
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.statements.lookup import QuerySources
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, InvalidRequest
from penstock.jobs.doors import refresh_plan
from penstock.jobs.specs import REFRESH, RefreshSpec, UpstreamSpec
from penstock.lance.doors import lance
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location
from penstock.model.functions import Function
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.jobs import NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.slots import slot_of_view
from penstock.model.tables import MAIN, Table
from penstock.model.views import Definition, IcebergState, Mode, Source, Watermark

# Refuses to queue a job, by what is true in its transaction.
Claim = Callable[[Transaction], Awaitable[None]]
S = TypeVar("S", bound=RefreshSpec)


@dataclass(frozen=True, slots=True)
class RefreshRequest:
    """A request to refresh a view; `options` go into the job's spec as they are."""

    mode: Mode = "auto"
    src_version: int | None = None
    output_limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    manifest: str | None = None
    # Also refresh the views that it reads: see `cascades`.
    cascade: bool = False


async def request_refresh(
    catalog: Catalog,
    view: MaterializedView,
    request: RefreshRequest,
    origin: Origin = NOBODY,
    claim: Claim | None = None,
) -> str:
    """Check a refresh as far as possible now, and queue it; returns the job.

    `claim` runs in the transaction that queues it, and may refuse.
    """
    cluster = catalog.queue.check_cluster(request.cluster)
    defined = await define(catalog, view, request, origin)
    for function in list_functions(defined.definition):
        await functions.ensure(catalog, view.table, function)
    id, left = await catalog.database.write(
        _enqueue, view, defined, request, cluster, catalog.queue.max_attempts, origin, claim
    )
    catalog.queue.ring()
    await dependents.let_go(catalog, left)
    return id


async def explain_refresh(
    catalog: Catalog, view: MaterializedView, request: RefreshRequest, origin: Origin = NOBODY
) -> dict[str, Any]:
    """The plan of a refresh, as data."""
    catalog.queue.check_cluster(request.cluster)
    await catalog.database.read(environments.resolve_in, request.manifest)
    defined = await define(catalog, view, request, origin)
    await catalog.database.read(materialized_views.check_sources, view.owner, defined.ids)
    return await explain_spec(catalog, make_spec(view.table, defined, request), defined)


async def explain_spec(
    catalog: Catalog, wanted: RefreshSpec, defined: ResolvedView
) -> dict[str, Any]:
    """The plan of a refresh with this spec, as data."""
    spec, error = await complete_spec(catalog.database, wanted)
    if spec is None:
        raise InvalidRequest(error, detail="check the view's id")
    ids = [spec.table_id, *(source.id for source in spec.definition.tables)]
    opened = dict([await _open(catalog, id) for id in ids])
    plan = await catalog.workers.run(_explain, spec, opened)
    return plan | {"estimated_seconds": await _estimate(catalog.database, defined, plan)}


async def _open(
    catalog: Catalog, id: str
) -> "tuple[Identifier, tuple[Location, lance.LanceDataset]]":
    """A table's newest version by the table's name, in the form that plans take."""
    table = await tables.find_by_id(catalog.database, id)
    if table is None:
        raise InvalidRequest("a table that the view reads was dropped meanwhile", detail="retry")
    location = Location(catalog.lake.place(table.location).uri, MAIN, catalog.lake.options)
    dataset = await datasets.read(catalog, table, MAIN, None, lambda dataset: dataset)
    return table.identifier, (location, dataset)


def _explain(
    spec: RefreshSpec, opened: "Mapping[Identifier, tuple[Location, lance.LanceDataset]]"
) -> dict[str, Any]:
    with translated():
        return refresh_plan.explain_refresh(spec, lambda table: opened[tuple(table)])


async def define(
    catalog: Catalog,
    view: MaterializedView,
    request: RefreshRequest,
    origin: Origin = NOBODY,
    check: Check | None = None,
) -> ResolvedView:
    """The view's definition now, if the request fits it and all its sources have consent.

    `check` can replace the latter.
    """

    async def check_consent(reading: QuerySources) -> None:
        await catalog.database.read(consents.check, view, reading, origin)

    known = await catalog.database.read(view_sources.get_known, view.table.id)
    defined = await definitions.define(
        catalog,
        view.table.namespace,
        view.asked,
        may_read=reading_as(catalog.database, view.owner),
        known=known,
        created=view.definition,
        version=request.src_version,
        check=check or check_consent,
    )
    followed = structs.replace(defined.definition, followed=view.definition.followed)
    defined = replace(defined, definition=followed, edition=view.edition)
    await definitions.check_acyclic(catalog, view.table.id, defined.ids)
    _check(defined, request)
    if request.src_version is not None:
        source = await tables.find_by_id(catalog.database, defined.definition.sources[0].id)
        if source is not None:
            await reconcile.get_version_of_branch(catalog, source, MAIN, request.src_version)
    return defined


def new_job(
    table: Table,
    defined: ResolvedView,
    request: RefreshRequest,
    cluster: str,
    upstream: Sequence[UpstreamSpec] = (),
) -> NewJob:
    """The job of a refresh, with views that it refreshes before; `enqueue_in` completes its
    environment.
    """
    spec = make_spec(table, defined, request)
    sources = {id for each in (spec, *upstream) for id in each.source_ids}
    return NewJob(
        kind=REFRESH,
        object=show(table.identifier),
        target=str(table),
        slot=slot_of_view(table.id),
        spec=structs.replace(spec, upstream=tuple(upstream), source_ids=tuple(sorted(sources))),
        cluster=cluster,
        manifest=_find_manifest(defined),
        also=tuple(slot_of_view(each.table_id) for each in upstream),
    )


def make_upstream_spec(
    table: Table, defined: ResolvedView, request: RefreshRequest
) -> UpstreamSpec:
    """The same of a view that another's job refreshes on the way; its environment is in it."""
    known = structs.asdict(make_spec(table, defined, request))
    return UpstreamSpec(**known, manifest=_find_manifest(defined))


def _find_manifest(defined: ResolvedView) -> str | None:
    return None if defined.udtf is None else defined.udtf.manifest


def make_spec(table: Table, defined: ResolvedView, request: RefreshRequest) -> RefreshSpec:
    """The spec for a runner; `complete` adds the rest when the job is leased."""
    found = list_functions(defined.definition)
    return RefreshSpec(
        table=table.identifier,
        table_id=table.id,
        definition=defined.definition,
        edition=defined.edition,
        src_version=request.src_version,
        output_limit=request.output_limit,
        mode=request.mode,
        resources=found[0].needs if found else None,
        states=dict(defined.states),
        inner={
            reader: {each.path: each.source for each in names}
            for reader, names in defined.reading.inner.items()
        },
        source_ids=tuple(sorted({source.id for source in defined.definition.sources})),
        **request.options,
    )


async def complete(
    tx: Transaction, spec: RefreshSpec, target: str
) -> tuple[RefreshSpec | None, str]:
    """The spec of a refresh when it is leased; None and a reason when there is nothing to do."""
    found, error = await complete_spec(tx, spec)
    if found is not None and (obstacle := await consents.find_obstacle(tx, spec)):
        return None, obstacle
    for each in () if found is None else (found, *found.upstream):
        for function in list_functions(each.definition):
            await functions.check_enabled(tx, function.registered)
    return found, error


async def complete_spec(tx: Transaction, spec: S) -> tuple[S | None, str]:
    """A job's spec with the current view and tables; None and a reason without a table."""
    row = await tx.fetch_one(
        "SELECT o.namespace, o.name, m.watermark, m.edition FROM objects o "
        "JOIN materialized_views m ON m.id = o.id WHERE o.id = $1",
        spec.table_id,
    )
    if row is None:
        return None, "the view was dropped"
    # An alteration may have been committed by an attempt of its own that could not report.
    if spec.alteration is None and spec.edition != row[3]:
        name = show((*from_path(row[0]), row[1]))
        return None, f"{name} was altered since; request the refresh again"
    sources, iceberg = list[Source](), dict[str, IcebergState]()
    for source in spec.definition.sources:
        found = await tx.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", source.id)
        if found is None:
            return None, f"table {show(source.table)}, which the view reads, was dropped"
        sources.append(structs.replace(source, table=(*from_path(found[0]), found[1])))
        if source.is_iceberg:
            iceberg[source.id] = await _read_state(tx, source.id)
    upstream = list[UpstreamSpec]()
    for each in spec.upstream:
        completed, error = await complete_spec(tx, each)
        if completed is None:
            return None, error
        upstream.append(completed)
    return structs.replace(
        spec,
        table=(*from_path(row[0]), row[1]),
        definition=structs.replace(spec.definition, sources=tuple(sources)),
        watermark=None if row[2] is None else msgspec.json.decode(row[2], type=Watermark),
        upstream=tuple(upstream),
        iceberg=iceberg,
    ), ""


async def _read_state(tx: Transaction, id: str) -> IcebergState:
    row = await tx.fetch_one(
        "SELECT uuid, rows_snapshot, metadata_location, absolute(location), "
        "absolute(metadata_folder) FROM iceberg_tables WHERE id = $1",
        id,
    )
    # It was there a moment ago, in the same transaction.
    assert row is not None
    return IcebergState(row[0], row[1], row[2], (row[3], row[4]))


async def record_refresh(tx: Transaction, spec: RefreshSpec, result: Mapping[str, Any]) -> None:
    """Record what the refreshed views are now, in the transaction that ends the job."""
    for each in spec.upstream:
        others = result.get("upstream")
        found = others.get(each.table_id) if isinstance(others, dict) else None
        if isinstance(found, dict):
            await record_refresh(tx, each, found)
    for function in list_functions(spec.definition)[:1]:
        await function_code.record_rate(tx, function, result)
    try:
        watermark = msgspec.convert(result.get("watermark"), Watermark)
    except msgspec.ValidationError:
        return
    bases = await freshness.find_bases(tx, watermark)
    watermark = structs.replace(watermark, bases=bases)
    await tx.fetch(
        "UPDATE materialized_views SET watermark = $2, refreshed_at = now_millis() WHERE id = $1",
        *(spec.table_id, msgspec.json.encode(watermark).decode()),
    )
    # A job that a release before queued does not say what names in Iceberg views meant.
    if spec.inner:
        await view_sources.record_states(tx, spec.table_id, spec.states, spec.inner)


def list_functions(definition: Definition) -> list[Function]:
    """The functions of a view; when there are several, callers take the first."""
    own = [] if definition.function is None else [definition.function]
    return [*own, *definition.column_functions]


async def _enqueue(
    tx: Transaction,
    view: MaterializedView,
    defined: ResolvedView,
    request: RefreshRequest,
    cluster: str,
    max_attempts: int,
    origin: Origin,
    claim: Claim | None,
) -> tuple[str, list[KeptVersions]]:
    if claim is not None:
        await claim(tx)
    left = await record_sources(tx, view, defined, origin)
    job = new_job(view.table, defined, request, cluster)
    id = await enqueue_in(tx, job, request, max_attempts)
    await idempotency.use(tx, origin, id)
    return id, left


async def record_sources(
    tx: Transaction, view: MaterializedView, defined: ResolvedView, origin: Origin
) -> list[KeptVersions]:
    """Record what a view reads now; returns what was kept of tables that it stopped reading.

    Raises when a source, or the view, is gone or must not be read.
    """
    table = view.table
    await lock_in(tx, view)
    await materialized_views.check_sources(tx, view.owner, defined.ids)
    answering = await consents.check(tx, view, defined.reading, origin)
    return await consents.record(tx, table.id, defined.reading, answering)


async def lock_in(tx: Transaction, view: MaterializedView) -> None:
    """Hold a view against alterations until the transaction ends; raises if there was one."""
    now = await tables.get(tx, view.table.identifier)
    if now.id != view.table.id:
        raise tables.missing(view.table.identifier)
    row = await tx.fetch_one(
        "UPDATE materialized_views SET edition = edition WHERE id = $1 RETURNING edition", now.id
    )
    if row is None or row[0] != view.edition:
        raise ConcurrentCommit(f"{view.table} was altered meanwhile", detail="retry")


async def enqueue_in(
    tx: Transaction, new: NewJob, request: RefreshRequest, max_attempts: int
) -> str:
    """Queue a refresh, in the environment of the request or else of the view."""
    manifest = await environments.resolve_in(tx, request.manifest) or new.manifest
    return await jobs.enqueue_in(tx, replace(new, manifest=manifest), max_attempts)


def _check(defined: ResolvedView, request: RefreshRequest) -> None:
    definition = defined.definition
    if request.output_limit is not None and definition.kind != "chunker":
        raise InvalidRequest(
            f"output_limit is for chunker views, and this one is of kind {definition.kind}",
            detail="leave it out, or put a LIMIT into the view's query",
        )
    if request.mode != "incremental":
        return
    is_whole = definition.shape == "whole" and definition.appends is None
    if is_whole and definition.kind == "query":
        raise InvalidRequest(
            f"the view cannot be refreshed incrementally: {definition.obstacle}",
            detail="use mode auto or full",
        )
    if defined.without_row_ids:
        names = ", ".join(show(name) for name in defined.without_row_ids)
        raise InvalidRequest(
            f"the view cannot be refreshed incrementally: {names} has no stable row ids",
            detail="use mode auto or full, or write the table anew with stable row ids",
        )


async def _estimate(
    tx: Transaction, defined: ResolvedView, plan: Mapping[str, Any]
) -> float | None:
    """Seconds on one core, by the last measured rate; None when unknown."""
    found, calls = list_functions(defined.definition), plan.get("function_calls")
    rate = await function_code.find_rate(tx, found[0]) if found else None
    return None if rate is None or calls is None else round(calls / rate, 3)
