"""The ledger: a table of the catalog with every row that a function failed on.

It is made when it is first needed, and is listed, described and queried like any other; only the
server writes to it. An entry stays as long as its job can be described.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.data import datasets, rows
from penstock.catalog.jobs import leases
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.materialized_views import refreshes
from penstock.catalog.names import namespaces, tables
from penstock.catalog.versions import versions
from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    NamespaceNotFound,
    TableAlreadyExists,
    TableNotFound,
)
from penstock.jobs import ledger
from penstock.jobs.ledger import Failing, Listing, Wanted
from penstock.model.functions import RowError
from penstock.model.identifiers import show
from penstock.model.jobs import REFRESH, Job
from penstock.model.system import LEDGER, SYSTEM
from penstock.model.tables import MAIN, Table
from penstock.model.views import Definition

if TYPE_CHECKING:
    from lance import LanceDataset

NOTHING = Listing([], [], False)


async def record(
    catalog: Catalog,
    job_id: str,
    attempt: int,
    errors: Sequence[RowError],
    view: str | None = None,
) -> int:
    """Note rows that an attempt failed on; returns how many were not in the ledger yet.

    They are of the job's table, or of a view that it refreshes on the way.
    """
    job = await leases.get_held(catalog, job_id, attempt)
    if not errors:
        return 0
    if view is not None:
        job = replace(job, spec=_find_spec(job, view))
    failing = await _describe(catalog, job, attempt)
    # What names no column of these comes from a job with one function.
    found = [(failing.get(error.column, next(iter(failing.values()))), error) for error in errors]
    table = await _get_or_create(catalog)
    ids = [ledger.make_id(each, error.row_id) for each, error in found]
    # One after the other, so that what is sent twice at once finds itself.
    async with catalog.ledger_lock:
        known = await datasets.read(catalog, table, MAIN, None, lambda d: ledger.find_ids(d, ids))
        new = [each for id, each in zip(ids, found, strict=True) if id not in known]
        if new:
            body = await catalog.workers.run(ledger.encode, new)
            await rows.insert(catalog, table, MAIN, body)
    return len(set(ids) - known)


def _find_spec(job: Job, view: str) -> dict[str, Any]:
    """What a job is to do to a view that it refreshes on the way, or to its own."""
    for spec in (job.spec, *job.spec.get("upstream", ())):
        if spec.get("table_id") == view:
            return dict(spec)
    raise InvalidRequest(f"job {job.id} does not refresh view {view}", detail="leave view out")


async def list_rows(catalog: Catalog, job_id: str, attempt: int) -> list[int]:
    """The ids of the rows on which the column of an attempt failed, in this job or before."""
    job = await leases.get_held(catalog, job_id, attempt)
    if job.kind == REFRESH:
        return await find_rows(catalog, job.spec["table_id"], MAIN, REFRESH)
    spec = job.spec
    return await find_rows(catalog, spec["table_id"], spec["branch"], spec["binding"])


async def find_rows(catalog: Catalog, table_id: str, branch: str, binding: str) -> list[int]:
    """The ids of the rows on which a column failed."""
    table = await _find(catalog)
    if table is None:
        return []

    def work(dataset: "LanceDataset") -> list[int]:
        return ledger.list_rows(dataset, table_id, branch, binding)

    return await datasets.read(catalog, table, MAIN, None, work)


async def list_errors(catalog: Catalog, wanted: Wanted, limit: int) -> Listing:
    """The newest entries about a table."""
    table = await _find(catalog)
    if table is None:
        return NOTHING
    return await datasets.read(
        catalog, table, MAIN, None, lambda d: ledger.list_entries(d, wanted, limit)
    )


async def purge(catalog: Catalog) -> None:
    """Forget entries older than the history of jobs that is kept."""
    table = await _find(catalog)
    if table is None:
        return
    before = int(time.time() * 1000) - catalog.queue.history_days * DAY_MILLIS
    if await datasets.read(catalog, table, MAIN, None, lambda d: ledger.has_before(d, before)):
        await datasets.change(catalog, table, MAIN, lambda d: ledger.delete_before(d, before))


async def _find(catalog: Catalog) -> Table | None:
    try:
        table = await tables.get(catalog.database, LEDGER)
    except (TableNotFound, NamespaceNotFound):
        return None
    return table if await datasets.has_version(catalog, table, MAIN) else None


async def _get_or_create(catalog: Catalog) -> Table:
    if (found := await _find(catalog)) is not None:
        return found
    await namespaces.create(catalog, SYSTEM, {}, "exist_ok")
    new = tables.plan_table(catalog, LEDGER, None, {}, managed=True)
    nothing = await catalog.workers.run(ledger.encode_nothing)
    # Another server may be making it at this moment.
    with contextlib.suppress(TableAlreadyExists):
        await rows.create(catalog, new, "exist_ok", nothing)
    return await tables.get(catalog.database, LEDGER)


async def _describe(catalog: Catalog, job: Job, attempt: int) -> dict[str, Failing]:
    """Where the errors of each of a job's functions come from, by its first column."""
    spec: dict[str, Any] = job.spec
    if job.kind == REFRESH:
        return await _describe_refresh(catalog, job, attempt)
    if "binding" not in spec:
        raise InvalidRequest(f"job {job.id} fills no column", detail="report its error instead")
    now = await backfills.complete_spec(catalog.database, spec) or spec
    function = spec.get("function") or {}
    head = await versions.find_head(catalog.database, spec["table_id"], spec["branch"])
    filled = tuple(spec.get("columns") or [spec["column"]])
    failing = Failing(
        table=show(tuple(now["table"])),
        table_id=spec["table_id"],
        table_version=head.version if head else 0,
        branch=spec["branch"],
        # Whichever column of a group a request names, its failures are the same.
        column=filled[0],
        columns=filled,
        binding=spec["binding"],
        function=function.get("name") or spec.get("expression") or "",
        function_version=function.get("version", ""),
        job_id=job.id,
        attempt=attempt,
    )
    return {failing.column: failing}


async def _describe_refresh(catalog: Catalog, job: Job, attempt: int) -> dict[str, Failing]:
    definition = msgspec.convert(job.spec["definition"], Definition)
    found = refreshes.list_functions(definition)
    if not found:
        raise InvalidRequest(f"job {job.id} calls no function", detail="report its error instead")
    now, _ = await refreshes.complete_spec(catalog.database, job.spec)
    id = job.spec["table_id"]
    head = await versions.find_head(catalog.database, id, MAIN)
    failing = [
        Failing(
            table=show(tuple((now or job.spec)["table"])),
            table_id=id,
            table_version=head.version if head else 0,
            branch=MAIN,
            column=made[0] if made else "",
            columns=made,
            binding=REFRESH,
            function=function.name,
            function_version=function.version,
            job_id=job.id,
            attempt=attempt,
        )
        for function in found
        for made in [tuple(output.column for output in function.outputs)]
    ]
    return {each.column: each for each in failing}


def refuse_write() -> InvalidTableState:
    return InvalidTableState(
        f"table {show(LEDGER)} is written by the server alone",
        detail="copy what you need into a table of your own; drop it to forget all errors",
    )
