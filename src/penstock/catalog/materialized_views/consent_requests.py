"""Show an owner what a materialized view has come to read, and record the owner's consent."""

import hashlib
from dataclasses import dataclass

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.queue import CHANGES
from penstock.catalog.materialized_views import consents, refreshes
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.catalog.names import dependents, tables, transactions
from penstock.catalog.names.dependents import KeptVersions
from penstock.catalog.statements.lookup import QuerySources
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, Forbidden
from penstock.model.identifiers import show
from penstock.model.origins import NOBODY, Origin

AS_IT_IS = RefreshRequest()


@dataclass(frozen=True, slots=True)
class Consent:
    """What is, or would be, consented to; `state` identifies all of it."""

    sources: list[str]
    state: str
    transaction: str | None = None


async def consent(
    catalog: Catalog,
    view: MaterializedView,
    state: str | None = None,
    origin: Origin = NOBODY,
    *,
    dry_run: bool = False,
) -> Consent:
    """Let a view read what its query reads now; refused when that does not match `state`.

    The caller must be able to read everything that is new.
    """

    async def check(reading: QuerySources) -> None:
        await catalog.database.read(_check, view, reading, origin)

    defined = await refreshes.define(catalog, view, AS_IT_IS, check=check)
    now = name_state(defined.reading)
    if state not in (None, now):
        raise ConcurrentCommit(
            f"what {view.table} is made from was changed meanwhile",
            detail="look at it again, then consent to what it is now",
        )
    if dry_run:
        sources = await catalog.database.read(_check, view, defined.reading, origin)
        return Consent(sources, now)
    found, left = await catalog.database.write(_consent, view, defined.reading, now, origin)
    catalog.queue.ring(CHANGES)
    await dependents.let_go(catalog, left)
    return found


def name_state(reading: QuerySources) -> str:
    """A digest of everything that a view reads, by which names, and of who wrote it."""
    editions = {id: each.id for id, each in reading.editions.items()}
    inner = sorted((id, n.path, n.source) for id, names in reading.inner.items() for n in names)
    content = [sorted(reading.ids), sorted(editions.items()), inner]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


async def _consent(
    tx: Transaction, view: MaterializedView, reading: QuerySources, state: str, origin: Origin
) -> tuple[Consent, list[KeptVersions]]:
    now = await tables.get(tx, view.table.identifier)
    if now.id != view.table.id:
        raise tables.missing(view.table.identifier)
    sources = await _check(tx, view, reading, origin)
    answering = dict.fromkeys(reading.ids, origin.principal)
    left = await consents.record(tx, view.table.id, reading, answering)
    operation = "ConsentMaterializedView"
    id = await transactions.record(tx, operation, show(view.table.identifier), origin)
    return Consent(sources, state, id), left


async def _check(
    tx: Transaction, view: MaterializedView, reading: QuerySources, origin: Origin
) -> list[str]:
    """The names of what needs consent; refused when the caller may not read one of them."""
    gaps, _ = await consents.find_gaps(tx, view.table.id, reading)
    for gap in gaps:
        if not await consents.may_read(tx, gap, origin):
            raise Forbidden(
                f"{view.table} needs consent to read a source that {origin.principal} may not read",
                detail="an owner of the view who may read it has to consent",
            )
    return await consents.list_names(tx, gaps, origin)
