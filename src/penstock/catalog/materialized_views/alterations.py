"""Alter materialized views: settings at once, a new definition by a job whose commit publishes it.

Until that commit the view is what it was. The alteration waits beside the view's record, and
becomes the record in the transaction that takes the commit (`pending_alterations`).
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import UNSET, UnsetType, structs

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_code
from penstock.catalog.jobs import job_events
from penstock.catalog.materialized_views import (
    alteration_checks,
    definitions,
    function_previews,
    materialized_views,
    pending_alterations,
    refreshes,
)
from penstock.catalog.materialized_views.create import (
    brings_code,
    check_functions_in,
    list_codes,
    record_functions,
)
from penstock.catalog.materialized_views.definitions import ResolvedView
from penstock.catalog.materialized_views.materialized_views import MaterializedView, SentDefinition
from penstock.catalog.materialized_views.pending_alterations import Settings
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.catalog.names import idempotency, transactions, view_sources
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.names.view_sources import NOTHING_KNOWN
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, PenstockError
from penstock.jobs.specs import Alteration, RefreshSpec
from penstock.lance.columns import function_code as code_files
from penstock.lance.write.view_tables import read_schema
from penstock.model.identifiers import show
from penstock.model.jobs import NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.rights import FUNCTIONS, NAMESPACE, Need
from penstock.model.tables import MAIN
from penstock.model.udtfs import read_kind
from penstock.model.views import SYSTEM_COLUMNS, Definition


@dataclass(frozen=True, slots=True)
class ViewAlteration:
    """A request to alter a view; what is None or unset stays as it is."""

    kind: str | None = None
    source_query: str | None = None
    output_schema: str | UnsetType | None = UNSET
    udtf_spec: dict[str, Any] | None = None
    inherited: tuple[str, ...] | None = None
    settings: Settings = field(default_factory=Settings)
    cluster: str | None = None
    # Whether new functions are tried on some rows first.
    preview: bool = True

    @property
    def defines(self) -> bool:
        """Whether it says anything about the definition."""
        given = self.kind, self.source_query, self.udtf_spec, self.inherited
        return any(each is not None for each in given) or self.output_schema is not UNSET


@dataclass(frozen=True, slots=True)
class _NewDefinition:
    """A view as it is to be, and as it is."""

    asked: SentDefinition
    defined: ResolvedView
    before: Definition

    @property
    def is_same(self) -> bool:
        return self.defined.definition.digest == self.before.digest


@dataclass(frozen=True, slots=True)
class AlterationOutcome:
    """What became of a request: the job that does it, None when all is done."""

    job_id: str | None = None
    # Why new functions were not tried before.
    untried: str = ""


async def alter(
    catalog: Catalog,
    view: MaterializedView,
    wanted: ViewAlteration,
    origin: Origin = NOBODY,
    leaving: "asyncio.Task[None] | None" = None,
) -> AlterationOutcome:
    """Alter a view, after a preview of functions that are new; raises CallerLeft."""
    cluster = catalog.queue.check_cluster(wanted.cluster)
    new = await _define(catalog, view, wanted, origin) if wanted.defines else None
    if new is None or new.is_same:
        await catalog.database.write(_set, view, wanted.settings, origin)
        return AlterationOutcome()
    await alteration_checks.check(catalog, view, new.before, new.defined.definition, origin)
    place = catalog.lake.place(view.table.location)
    for content in list_codes(new.defined):
        await catalog.lake.run(code_files.store, place, content)
    for function in refreshes.list_functions(new.before):
        await function_code.ensure(catalog, view.table, function)
    job = refreshes.new_job(view.table, new.defined, RefreshRequest(), cluster)
    job = replace(job, spec=_make_spec(view, new))
    untried = ""
    if wanted.preview:
        await catalog.database.read(pending_alterations.check_none, view.table)
        untried = await function_previews.check(catalog, job, origin, leaving)
    id = await catalog.database.write(
        _enqueue, view, new, job, wanted.settings, catalog.queue.max_attempts, origin, untried
    )
    catalog.queue.ring()
    return AlterationOutcome(id, untried)


async def explain(
    catalog: Catalog, view: MaterializedView, wanted: ViewAlteration, origin: Origin = NOBODY
) -> dict[str, Any]:
    """The plan of an alteration, as data: what stays, what is computed, what falls."""
    catalog.queue.check_cluster(wanted.cluster)
    new = await _define(catalog, view, wanted, origin) if wanted.defines else None
    if new is None or new.is_same:
        return await _explain_nothing(catalog, view)
    await alteration_checks.check(catalog, view, new.before, new.defined.definition, origin)
    return await refreshes.explain_spec(catalog, _make_spec(view, new), new.defined)


async def _explain_nothing(catalog: Catalog, view: MaterializedView) -> dict[str, Any]:
    definition = view.definition
    names = [name for name in read_schema(definition).names if name not in SYSTEM_COLUMNS]
    counts = ("rows_to_insert", "rows_to_update", "rows_to_delete", "function_calls", "fragments")
    rows = await datasets.read(
        catalog, view.table, MAIN, None, lambda dataset: dataset.count_rows(), is_brief=True
    )
    return {
        "mode": "none",
        "reason": "the view's definition stays as it is",
        **dict.fromkeys(counts, 0),
        "unknown": {},
        "columns_kept": names,
        "columns_computed": [],
        "columns_dropped": [],
        "rows_staying": rows,
        "kind": definition.kind,
        "shape": definition.shape,
        "obstacle": definition.obstacle,
        "source_versions": {},
        "estimated_seconds": None,
    }


async def _define(
    catalog: Catalog, view: MaterializedView, wanted: ViewAlteration, origin: Origin
) -> _NewDefinition:
    """The new definition, made with the rights of whoever alters the view."""
    asked = merge(view, wanted)
    known = NOTHING_KNOWN
    # Whoever sends the query means what its names stand for now, even if its text is the old one.
    if wanted.source_query is None:
        known = await catalog.database.read(view_sources.get_known, view.table.id)
    defined = await definitions.define(
        catalog,
        view.table.namespace,
        asked,
        may_read=reading_as(catalog.database, origin.grantees),
        known=known,
        before=view.definition,
        cluster=wanted.cluster,
    )
    await catalog.database.read(materialized_views.check_sources, origin.grantees, defined.ids)
    await definitions.check_acyclic(catalog, view.table.id, defined.ids)
    before = await _find_before(catalog, view, origin)
    known_codes = {each.sha256 for each in refreshes.list_functions(before)}
    codes = {code_files.hash_of(content) for content in list_codes(defined)}
    # An environment is code as well.
    is_new = bool(codes - known_codes) or _find_manifest(asked) != _find_manifest(view.asked)
    if brings_code(defined) and is_new:
        need = Need(FUNCTIONS, NAMESPACE, view.table.namespace)
        await grants.check_in(catalog.database, origin, need)
    return _NewDefinition(asked, replace(defined, edition=view.edition), before)


def merge(view: MaterializedView, wanted: ViewAlteration) -> SentDefinition:
    """What a client would have sent for the altered view."""
    asked = view.asked
    if wanted.kind is not None and read_kind(wanted.kind) != asked.kind:
        raise InvalidRequest(
            f"kind is {wanted.kind!r}, and the view is of kind {asked.kind!r}",
            detail="a view's kind cannot be altered: drop the view and create it anew",
        )
    if wanted.inherited is not None and asked.kind != "chunker":
        raise InvalidRequest(
            f"inherited is for chunker views, and this one is of kind {asked.kind}",
            detail="leave it out; select the columns in the query",
        )
    schema = None if wanted.output_schema is UNSET else wanted.output_schema or None
    if wanted.inherited is not None and schema is not None:
        raise InvalidRequest(
            "inherited and output_schema are both given", detail="send only one of them"
        )
    inherited = wanted.inherited
    if inherited is None and schema is None and asked.kind == "chunker":
        inherited = view.definition.inherited
    return SentDefinition(
        kind=asked.kind,
        source_query=wanted.source_query or asked.source_query,
        output_schema=schema,
        udtf_spec=wanted.udtf_spec or asked.udtf_spec,
        inherited=inherited,
        sql=asked.sql if wanted.source_query is None else None,
    )


def _find_manifest(asked: SentDefinition) -> object:
    return (asked.udtf_spec or {}).get("manifest") or None


async def _find_before(catalog: Catalog, view: MaterializedView, origin: Origin) -> Definition:
    """The definition by which the view's rows were made; as it was recorded, if it fits no more."""
    try:
        return (await refreshes.define(catalog, view, RefreshRequest(), origin)).definition
    except PenstockError:
        # A source may have lost what the old query reads: a reason to alter it.
        return view.definition


def _make_spec(view: MaterializedView, new: _NewDefinition) -> RefreshSpec:
    spec = refreshes.make_spec(view.table, new.defined, RefreshRequest())
    alteration = Alteration(before=new.before, source_query=new.asked.source_query)
    return structs.replace(spec, alteration=alteration)


async def _enqueue(
    tx: Transaction,
    view: MaterializedView,
    new: _NewDefinition,
    job: NewJob,
    settings: Settings,
    max_attempts: int,
    origin: Origin,
    untried: str,
) -> str:
    await refreshes.lock_in(tx, view)
    await pending_alterations.check_none(tx, view.table)
    await materialized_views.check_sources(tx, origin.grantees, new.defined.ids)
    await check_functions_in(tx, new.defined)
    await record_functions(tx, new.defined)
    id = await refreshes.enqueue_in(tx, job, RefreshRequest(), max_attempts)
    if untried:
        await job_events.append_note(tx, id, f"the new function was not previewed: {untried}")
    sources = new.defined.reading.to_record()
    await pending_alterations.insert(
        tx, view.table.id, id, new.asked, new.defined.definition, sources, settings, origin
    )
    await idempotency.use(tx, origin, id)
    return id


async def _set(tx: Transaction, view: MaterializedView, settings: Settings, origin: Origin) -> None:
    await pending_alterations.set_settings(tx, view.table.id, settings)
    await transactions.record(tx, "AlterMaterializedView", show(view.table.identifier), origin)
