"""Request previews: jobs that compute a column for a few rows and write nothing."""

from dataclasses import dataclass

from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.columns.backfills import BackfillRequest
from penstock.catalog.functions import functions
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.materialized_views import refreshes
from penstock.catalog.names import tables
from penstock.database.interface import Transaction
from penstock.jobs.specs import PREVIEW, PreviewSpec
from penstock.lance.columns.computed import ComputedColumn
from penstock.model.identifiers import show
from penstock.model.jobs import NewJob
from penstock.model.slots import slot_of_preview
from penstock.model.tables import Table


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A request to see what a column would be for some rows."""

    column: str
    branch: str
    rows: int
    where: str | None = None
    cluster: str | None = None
    manifest: str | None = None


async def request_preview(catalog: Catalog, table: Table, preview: PreviewRequest) -> str:
    """Check a preview as a backfill is checked, and queue it; returns the id of the job."""
    cluster = catalog.queue.check_cluster(preview.cluster)
    request = BackfillRequest(
        preview.column, preview.branch, {}, where=preview.where, manifest=preview.manifest
    )
    column = await backfills.check(catalog, table, request)
    if column.function is not None:
        await functions.ensure(catalog, table, column.function)
    id = await catalog.database.write(_enqueue, table, request, column, preview.rows, cluster)
    catalog.queue.ring()
    return id


async def _enqueue(
    tx: Transaction,
    table: Table,
    request: BackfillRequest,
    column: ComputedColumn,
    rows: int,
    cluster: str,
) -> str:
    now = await tables.get(tx, table.identifier)
    if now.id != table.id:
        raise tables.missing(table.identifier)
    new = NewJob(
        kind=PREVIEW,
        object=show(table.identifier),
        target=f"{table}.{column.name}",
        slot=slot_of_preview(table.id),
        spec=backfills.make_spec(PreviewSpec, table, request, column, rows=rows),
        cluster=cluster,
        manifest=await environments.choose_in(tx, request.manifest, column.manifest),
    )
    # No retries: the client waits for it and can ask again.
    return await jobs.enqueue_in(tx, new, max_attempts=1)


async def complete(
    tx: Transaction, spec: PreviewSpec, target: str
) -> tuple[PreviewSpec | None, str]:
    """The spec of a preview when it is leased; None and a reason when there is nothing to show."""
    if spec.altered is not None:
        view, error = await refreshes.complete_spec(tx, spec.altered)
        if view is None:
            return None, error
        return structs.replace(spec, table=view.table, altered=view), ""
    found = await backfills.complete_spec(tx, spec)
    if found is not None and found.function is not None:
        await functions.check_enabled(tx, found.function.registered)
    return (None, f"the table of {target} was dropped") if found is None else (found, "")
