"""Refreshes of materialized views: requested, explained, and what they leave in the catalog."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import functions
from penstock.catalog.data import datasets
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.materialized_views import consents, definitions, freshness, materialized_views
from penstock.catalog.materialized_views.definitions import Check, Defined, Reading
from penstock.catalog.materialized_views.materialized_views import View
from penstock.catalog.names import dependents, idempotency, tables
from penstock.catalog.names.dependents import Kept
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.model.functions import Function
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.jobs import REFRESH, Job, NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table
from penstock.model.views import Definition, Mode, RefreshSpec, Watermark

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.session.remote import Location


@dataclass(frozen=True, slots=True)
class Refresh:
    """A request to refresh a view; `options` go into the job's spec as they are."""

    mode: Mode = "auto"
    src_version: int | None = None
    output_limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    cluster: str | None = None
    manifest: str | None = None
    # Together with the views that it reads: see `cascades`.
    cascade: bool = False


async def request_refresh(
    catalog: Catalog, view: View, request: Refresh, origin: Origin = NOBODY
) -> str:
    """Check a refresh as far as that can be done now, and queue it; returns the job."""
    cluster = catalog.queue.check_cluster(request.cluster)
    defined = await define(catalog, view, request, origin)
    for function in list_functions(defined.definition):
        await functions.ensure(catalog, view.table, function)
    id, left = await catalog.database.write(
        _enqueue, view, defined, request, cluster, catalog.queue.max_attempts, origin
    )
    catalog.queue.ring()
    await dependents.let_go(catalog, left)
    return id


async def explain_refresh(
    catalog: Catalog, view: View, request: Refresh, origin: Origin = NOBODY
) -> dict[str, Any]:
    """The plan that a refresh would carry out, as data."""
    catalog.queue.check_cluster(request.cluster)
    await catalog.database.read(environments.resolve_in, request.manifest)
    defined = await define(catalog, view, request, origin)
    ids_read = set(defined.sources.values())
    await catalog.database.read(materialized_views.check_sources, view.owner, ids_read)
    spec, error = await complete_spec(catalog.database, make_spec(view.table, defined, request))
    if spec is None:
        raise InvalidRequest(error, detail="check the view's id")
    ids = [view.table.id, *(source["id"] for source in spec["definition"]["sources"])]
    opened = dict([await _open(catalog, id) for id in ids])
    plan = await catalog.workers.run(_explain, spec, opened)
    return plan | {"estimated_seconds": await _estimate(catalog.database, defined, plan)}


async def _open(catalog: Catalog, id: str) -> "tuple[Identifier, tuple[Location, LanceDataset]]":
    """A table's newest version, by the table's name, as plans take it."""
    from penstock.lance.session.remote import Location

    table = await tables.find_by_id(catalog.database, id)
    if table is None:
        raise InvalidRequest("a table that the view reads was dropped meanwhile", detail="retry")
    location = Location(catalog.lake.place(table.location).uri, MAIN, catalog.lake.options)
    dataset = await datasets.read(catalog, table, MAIN, None, lambda dataset: dataset)
    return table.identifier, (location, dataset)


def _explain(
    spec: dict[str, Any], opened: "Mapping[Identifier, tuple[Location, LanceDataset]]"
) -> dict[str, Any]:
    # Here, because planning is asked for rarely and a server of metadata never needs it.
    from penstock.jobs.refresh.explain import explain_refresh
    from penstock.lance.errors import translated

    with translated():
        return explain_refresh(spec, lambda table: opened[tuple(table)])


async def define(
    catalog: Catalog,
    view: View,
    request: Refresh,
    origin: Origin = NOBODY,
    check: Check | None = None,
) -> Defined:
    """The view's definition now, when the request fits it and all that it reads was consented to.

    Another `check` may take the place of the latter.
    """

    async def check_consent(reading: Reading) -> None:
        await catalog.database.read(consents.check, view, reading, origin)

    known = await catalog.database.read(materialized_views.list_names_of_sources, view.table.id)
    defined = await definitions.define(
        catalog,
        view.table.namespace,
        view.asked,
        may_read=definitions.reading_as(catalog, view.owner),
        known=known,
        created=view.definition,
        version=request.src_version,
        check=check or check_consent,
    )
    await definitions.check_acyclic(catalog, view.table.id, set(defined.sources.values()))
    _check(defined, request)
    if request.src_version is not None:
        source = await tables.find_by_id(catalog.database, defined.definition.sources[0].id)
        if source is not None:
            await reconcile.get_version_of_branch(catalog, source, MAIN, request.src_version)
    return defined


def new_job(table: Table, defined: Defined, request: Refresh, cluster: str) -> NewJob:
    """The job of a refresh; its environment is completed when it is queued."""
    return NewJob(
        kind=REFRESH,
        object=show(table.identifier),
        target=str(table),
        slot=slot_of(table.id),
        spec=make_spec(table, defined, request),
        cluster=cluster,
        manifest=None if defined.udtf is None else defined.udtf.manifest,
    )


def slot_of(view_id: str) -> str:
    """A view is refreshed by one job at a time; no branch and no column is called like that."""
    return f"{view_id}//{REFRESH}"


def make_spec(table: Table, defined: Defined, request: Refresh) -> dict[str, Any]:
    """What a runner has to know; some of it is completed when the job is leased."""
    spec = RefreshSpec(
        table=table.identifier,
        table_id=table.id,
        definition=defined.definition,
        src_version=request.src_version,
        output_limit=request.output_limit,
        mode=request.mode,
        **request.options,
    )
    found = list_functions(defined.definition)
    known: dict[str, Any] = msgspec.to_builtins(spec)
    return known | {
        "resources": msgspec.to_builtins(found[0].needs) if found else None,
        # The Iceberg views that the definition is made from.
        "states": dict(defined.states),
        # What the runner may read for the job.
        "source_ids": sorted({source.id for source in defined.definition.sources}),
    }


async def complete(tx: Transaction, job: Job) -> tuple[dict[str, Any] | None, str]:
    """The spec of a refresh as it is leased; None, and why, when it has nothing to work on."""
    spec, error = await complete_spec(tx, job.spec)
    if spec is not None and (obstacle := await consents.find_obstacle(tx, job.spec)):
        return None, obstacle
    return spec, error


async def complete_spec(
    tx: Transaction, spec: Mapping[str, Any]
) -> tuple[dict[str, Any] | None, str]:
    """A job's spec with what is true of view and tables now; None, and why, without a table."""
    row = await tx.fetch_one(
        "SELECT o.namespace, o.name, m.watermark FROM objects o "
        "JOIN materialized_views m ON m.id = o.id WHERE o.id = $1",
        spec["table_id"],
    )
    if row is None:
        return None, "the view was dropped"
    sources = []
    for source in spec["definition"]["sources"]:
        found = await tx.fetch_one(
            "SELECT namespace, name FROM objects WHERE id = $1", source["id"]
        )
        if found is None:
            return None, f"table {show(tuple(source['table']))}, which the view reads, was dropped"
        sources.append(source | {"table": [*from_path(found[0]), found[1]]})
    upstream = []
    for each in spec.get("upstream", ()):
        completed, error = await complete_spec(tx, each)
        if completed is None:
            return None, error
        upstream.append(completed)
    return dict(spec) | {
        "table": [*from_path(row[0]), row[1]],
        "definition": spec["definition"] | {"sources": sources},
        "watermark": None if row[2] is None else msgspec.json.decode(row[2]),
        "upstream": upstream,
    }, ""


async def record_refresh(
    tx: Transaction, spec: Mapping[str, Any], result: Mapping[str, Any]
) -> None:
    """Note what a view is now, in the transaction that ends the job; and what others are that were
    refreshed with it.
    """
    for each in spec.get("upstream", ()):
        others = result.get("upstream")
        found = others.get(each["table_id"]) if isinstance(others, dict) else None
        if isinstance(found, dict):
            await record_refresh(tx, each, found)
    definition = msgspec.convert(spec["definition"], Definition)
    for function in list_functions(definition)[:1]:
        await functions.record_rate(tx, {"sha256": function.sha256}, result)
    try:
        watermark = msgspec.convert(result.get("watermark"), Watermark)
    except msgspec.ValidationError:
        return
    bases = await freshness.find_bases(tx, watermark)
    watermark = msgspec.structs.replace(watermark, bases=bases)
    await tx.fetch(
        "UPDATE materialized_views SET watermark = $2, refreshed_at = now_millis() WHERE id = $1",
        *(spec["table_id"], msgspec.json.encode(watermark).decode()),
    )
    for source, state in spec["states"].items():
        await tx.fetch(
            "UPDATE view_sources SET state = $3 WHERE view_id = $1 AND source_id = $2",
            *(spec["table_id"], source, state),
        )


def list_functions(definition: Definition) -> list[Function]:
    """The functions of a view; when there are several, the first is as good as any."""
    own = [] if definition.function is None else [definition.function]
    return [*own, *definition.column_functions]


async def _enqueue(
    tx: Transaction,
    view: View,
    defined: Defined,
    request: Refresh,
    cluster: str,
    max_attempts: int,
    origin: Origin,
) -> tuple[str, list[Kept]]:
    left = await record_sources(tx, view, defined, origin)
    job = new_job(view.table, defined, request, cluster)
    id = await enqueue_in(tx, job, request, max_attempts)
    await idempotency.use(tx, origin, id)
    return id, left


async def record_sources(
    tx: Transaction, view: View, defined: Defined, origin: Origin
) -> list[Kept]:
    """Note what a view reads now; returns what is kept of tables that it reads no more.

    Raises when something of it, or the view, is not there for it any more.
    """
    table = view.table
    now = await tables.get(tx, table.identifier)
    if now.id != table.id:
        raise tables.missing(table.identifier)
    await materialized_views.check_sources(tx, view.owner, set(defined.sources.values()))
    answering = await consents.check(tx, view, defined.reading, origin)
    return await consents.record(tx, table.id, defined.reading, answering)


async def enqueue_in(tx: Transaction, new: NewJob, request: Refresh, max_attempts: int) -> str:
    """Queue a refresh, in the environment of the request or else of the view."""
    manifest = await environments.resolve_in(tx, request.manifest) or new.manifest
    return await jobs.enqueue_in(tx, replace(new, manifest=manifest), max_attempts)


def _check(defined: Defined, request: Refresh) -> None:
    definition = defined.definition
    if request.output_limit is not None and definition.kind != "chunker":
        raise InvalidRequest(
            f"output_limit is for chunker views, and this one is of kind {definition.kind}",
            detail="leave it out, or put a LIMIT into the view's query",
        )
    if request.mode != "incremental":
        return
    if definition.shape == "whole":
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


async def _estimate(tx: Transaction, defined: Defined, plan: Mapping[str, Any]) -> float | None:
    """Seconds on one core, by the rate that was measured last; None when it is not known."""
    found, calls = list_functions(defined.definition), plan.get("function_calls")
    rate = await functions.find_rate(tx, found[0]) if found else None
    return None if rate is None or calls is None else round(calls / rate, 3)
