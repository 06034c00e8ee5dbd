"""Request and explain the refresh of a view together with the views that it reads.

One job refreshes all of them, each after what it reads, and holds the slots of all, so that no
other job refreshes one of them meanwhile.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.functions import functions
from penstock.catalog.materialized_views import materialized_views, refreshes
from penstock.catalog.materialized_views.definitions import ResolvedView
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.materialized_views.refreshes import RefreshRequest, list_functions
from penstock.catalog.names import dependents, idempotency, tables
from penstock.catalog.names.dependents import KeptVersions
from penstock.database.interface import Transaction
from penstock.errors import Forbidden, InvalidRequest
from penstock.model.identifiers import show
from penstock.model.origins import NOBODY, Origin
from penstock.model.rights import READ, TABLE, WRITE, Need

MAX_VIEWS = 100
# The other views are refreshed with default options.
ON_THE_WAY = RefreshRequest()
CHANGES_TOO = "what it reads changes in this refresh; how much follows from that"
COUNTS = ("rows_to_insert", "rows_to_update", "rows_to_delete", "function_calls")


@dataclass(frozen=True, slots=True)
class CascadeStep:
    """One view of a cascade, as it is defined now."""

    view: MaterializedView
    defined: ResolvedView


async def request_cascade(
    catalog: Catalog, view: MaterializedView, request: RefreshRequest, origin: Origin = NOBODY
) -> str:
    """Check a refresh of a view and of all views that it reads, and queue it; returns the job."""
    cluster = catalog.queue.check_cluster(request.cluster)
    steps = await find_steps(catalog, view, request, origin, WRITE)
    for step in steps:
        for function in list_functions(step.defined.definition):
            await functions.ensure(catalog, step.view.table, function)
    id, left = await catalog.database.write(
        _enqueue, steps, request, cluster, catalog.queue.max_attempts, origin
    )
    catalog.queue.ring()
    await dependents.let_go(catalog, left)
    return id


async def explain_cascade(
    catalog: Catalog, view: MaterializedView, request: RefreshRequest, origin: Origin = NOBODY
) -> dict[str, Any]:
    """The plan of a view's refresh, with the plans of the views refreshed before it."""
    plans: dict[str, dict[str, Any]] = {}
    changing = set[str]()
    for step in await find_steps(catalog, view, request, origin, READ):
        wanted = request if step.view.table.id == view.table.id else ON_THE_WAY
        plan = await refreshes.explain_refresh(catalog, step.view, wanted, origin)
        if changing & {source.id for source in step.defined.definition.sources}:
            plan = _follow(plan)
        if plan["mode"] != "none":
            changing.add(step.view.table.id)
        plans[show(step.view.table.identifier)] = plan
    own = plans.pop(show(view.table.identifier))
    return own | {"upstream": plans}


async def find_steps(
    catalog: Catalog, view: MaterializedView, request: RefreshRequest, origin: Origin, right: int
) -> list[CascadeStep]:
    """The view and all views that it reads, in the order of their refreshes.

    Refused when the caller lacks this right on one of them, without saying what else is wrong with
    that one.
    """
    if request.src_version is not None:
        raise InvalidRequest(
            f"src_version is {request.src_version}, and cascade is set",
            detail="leave one of them out: a cascade follows the newest version of every table",
        )
    found: dict[str, CascadeStep] = {}

    async def check(above: MaterializedView) -> None:
        await catalog.database.read(_check_may, above, origin, right)

    async def define(view: MaterializedView, request: RefreshRequest) -> ResolvedView:
        return await refreshes.define(catalog, view, request, origin)

    await _visit(catalog, view, request, (), found, check, define)
    return list(found.values())


async def _visit(
    catalog: Catalog,
    view: MaterializedView,
    request: RefreshRequest,
    path: tuple[str, ...],
    found: dict[str, CascadeStep],
    check: Callable[[MaterializedView], Awaitable[None]],
    define: Callable[[MaterializedView, RefreshRequest], Awaitable[ResolvedView]],
) -> None:
    id = view.table.id
    if id in path:
        raise InvalidRequest(
            f"{view.table} reads itself, by way of what it is made from",
            detail="change the Iceberg view, or the view, that closes the circle",
        )
    if len(found) + len(path) >= MAX_VIEWS:
        raise InvalidRequest(
            f"the cascade has more than {MAX_VIEWS} views", detail="refresh some of them before"
        )
    defined = await define(view, request)
    for source in defined.definition.sources:
        if source.id not in found:
            table = await tables.find_by_id(catalog.database, source.id)
            if table is not None and table.is_view:
                above = await materialized_views.load(catalog.database, table)
                await check(above)
                await _visit(catalog, above, ON_THE_WAY, (*path, id), found, check, define)
    found[id] = CascadeStep(view, defined)


async def _enqueue(
    tx: Transaction,
    steps: Sequence[CascadeStep],
    request: RefreshRequest,
    cluster: str,
    max_attempts: int,
    origin: Origin,
) -> tuple[str, list[KeptVersions]]:
    *others, last = steps
    for step in others:
        await _check_may(tx, step.view, origin, WRITE)
    left = list[KeptVersions]()
    for step in steps:
        left += await refreshes.record_sources(tx, step.view, step.defined, origin)
    upstream = [
        refreshes.make_upstream_spec(step.view.table, step.defined, ON_THE_WAY) for step in others
    ]
    job = refreshes.new_job(last.view.table, last.defined, request, cluster, upstream)
    id = await refreshes.enqueue_in(tx, job, request, max_attempts)
    await idempotency.use(tx, origin, id)
    return id, left


async def _check_may(tx: Transaction, view: MaterializedView, origin: Origin, right: int) -> None:
    """Refuse a view that the caller has no right to; named only if the caller may read it."""
    name = view.table.identifier
    if not origin.grantees or await grants.may_in(tx, origin.grantees, Need(right, TABLE, name)):
        return
    if await grants.may_in(tx, origin.grantees, Need(READ, TABLE, name)):
        raise grants.lacking(origin.principal, Need(right, TABLE, name))
    raise Forbidden(
        f"the view reads another view that {origin.principal} may not refresh",
        detail="ask who owns it to refresh it, then refresh this one without cascade",
    )


def _follow(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan of a view one of whose sources is about to get a new version."""
    unknown = plan | dict.fromkeys((*COUNTS, "estimated_seconds"))
    unknown["unknown"] = dict.fromkeys(COUNTS, CHANGES_TOO)
    is_full = plan["mode"] == "full"
    return unknown if is_full else unknown | {"mode": "incremental", "reason": CHANGES_TOO}
