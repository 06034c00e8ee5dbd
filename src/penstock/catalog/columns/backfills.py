"""Backfills of bound columns: requested, explained, and how far they have filled a column.

The catalog keeps a column's watermarks: what the last backfills covered, the newest first.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import computed_columns, declarations, functions, watermarks
from penstock.catalog.data import datasets
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.names import idempotency, tables
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest
from penstock.lance.columns import computed
from penstock.lance.columns.computed import Computed, list_group
from penstock.lance.expressions.check import check_expression
from penstock.lance.session.remote import Location
from penstock.model.identifiers import from_path, show
from penstock.model.jobs import BACKFILL, Job, NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class Backfill:
    """A request to fill a bound column; `options` go into the job's spec as they are."""

    column: str
    branch: str
    options: Mapping[str, Any]
    read_version: int | None = None
    where: str | None = None
    cluster: str | None = None
    manifest: str | None = None
    errors_only: bool = False


async def request_backfill(
    catalog: Catalog, table: Table, request: Backfill, origin: Origin = NOBODY
) -> str:
    """Check a backfill as far as that can be done now, and queue it; returns the job."""
    cluster = catalog.queue.check_cluster(request.cluster)
    column = await check(catalog, table, request)
    if column.function is not None:
        await functions.ensure(catalog, table, column.function)
    id = await catalog.database.write(
        _enqueue, table, request, column, cluster, catalog.queue.max_attempts, origin
    )
    catalog.queue.ring()
    return id


async def explain_backfill(
    catalog: Catalog, table: Table, request: Backfill, error_rows: Collection[int] | None = None
) -> dict[str, Any]:
    """The plan that a backfill would carry out, as data; error rows are what the ledger has."""
    catalog.queue.check_cluster(request.cluster)
    await catalog.database.read(environments.resolve_in, request.manifest)
    column = await check(catalog, table, request)
    spec = make_spec(table, request, column)
    found = await complete_spec(catalog.database, spec) or spec
    uri = catalog.lake.place(table.location).uri
    location = Location(uri, request.branch, catalog.lake.options)

    def work(dataset: "LanceDataset") -> dict[str, Any]:
        # Here, because planning is asked for rarely and a server of metadata never needs it.
        from penstock.jobs.backfill import explain

        return explain.explain_backfill(dataset, found, location, error_rows)

    plan = await datasets.read(catalog, table, request.branch, request.read_version, work)
    return plan | {"estimated_seconds": await _estimate(catalog.database, column, plan)}


async def complete(tx: Transaction, job: Job) -> tuple[dict[str, Any] | None, str]:
    """The spec of a backfill as it is leased; None, and why, when there is nothing to fill."""
    spec = await complete_spec(tx, job.spec)
    if spec is None:
        return None, f"the table of {job.target} was dropped"
    if not await is_bound(tx, spec):
        return None, f"{job.target} was dropped or declared anew since the backfill was requested"
    return spec, ""


async def complete_spec(tx: Transaction, spec: dict[str, Any]) -> dict[str, Any] | None:
    """A job's spec with what is true of table and column at this moment; None without a table."""
    row = await tx.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", spec["table_id"])
    if row is None:
        return None
    found = await tx.fetch_one(
        "SELECT watermarks, function FROM columns "
        "WHERE table_id = $1 AND branch = $2 AND binding = $3 ORDER BY name LIMIT 1",
        spec["table_id"],
        spec["branch"],
        spec["binding"],
    )
    known, function = (None, None) if found is None else found
    marks = [] if known is None else msgspec.json.decode(known)
    now = {
        "table": [*from_path(row[0]), row[1]],
        "watermark": marks[0] if marks else None,
        "watermarks": marks,
    }
    found_now = spec | now
    if function is not None:
        declared = msgspec.json.decode(function)
        # Other code counts only if it was declared here: the mirror tells what the table says.
        if await functions.is_known(tx, declared["sha256"]):
            found_now |= _follow(spec, declared)
    return found_now


async def is_bound(tx: Transaction, spec: Mapping[str, Any]) -> bool:
    """Whether the column of a job's spec is still bound as it was when the job was queued."""
    if not spec["binding"]:
        return True
    row = await tx.fetch_one(
        "SELECT 1 FROM columns WHERE table_id = $1 AND branch = $2 AND binding = $3 LIMIT 1",
        spec["table_id"],
        spec["branch"],
        spec["binding"],
    )
    return row is not None


async def record_watermark(
    tx: Transaction, spec: Mapping[str, Any], result: Mapping[str, Any]
) -> None:
    """Note how far a column is filled now, in the transaction that ends the job."""
    if spec.get("function") is not None:
        await functions.record_rate(tx, spec["function"], result)
    watermark = result.get("watermark")
    if not isinstance(watermark, dict) or not isinstance(watermark.get("version"), int):
        return
    key = spec["table_id"], spec["branch"], spec["binding"]
    row = await tx.fetch_one(
        "SELECT watermarks FROM columns "
        "WHERE table_id = $1 AND branch = $2 AND binding = $3 ORDER BY name LIMIT 1",
        *key,
    )
    known = [] if row is None or row[0] is None else msgspec.json.decode(row[0])
    await tx.fetch(
        "UPDATE columns SET watermarks = $4 WHERE table_id = $1 AND branch = $2 AND binding = $3",
        *key,
        msgspec.json.encode(watermarks.add(known, watermark)).decode(),
    )


async def check(catalog: Catalog, table: Table, request: Backfill) -> Computed:
    """The column of a request, which is refused as far as that can be told now."""
    if request.read_version is not None:
        await reconcile.get_version_of_branch(catalog, table, request.branch, request.read_version)

    def work(dataset: "LanceDataset") -> Computed:
        column = computed.get_computed(dataset, request.column)
        computed.check_known(dataset, column)
        if request.errors_only and column.function is None:
            raise InvalidRequest(
                f"column {column.name!r} is computed by SQL, which has no rows that failed",
                detail="leave errors_only out, or write another where",
            )
        if request.where is not None:
            computed.check_where(dataset, request.where)
        return column

    column = await datasets.read(catalog, table, request.branch, None, work)
    is_given = bool((request.manifest or "").strip())
    await declarations.check(catalog.database, table, column, with_manifest=not is_given)
    return column


def _check(name: str, sql: str | None) -> str | None:
    return None if sql is None else check_expression(name, sql)


def make_spec(table: Table, request: Backfill, column: Computed) -> dict[str, Any]:
    """What a runner has to know; some of it is completed when the job is leased."""
    function = column.function
    return {
        "table": list(table.identifier),
        "table_id": table.id,
        "column": column.columns[0],
        "columns": list(column.columns),
        "branch": request.branch,
        # In the words that were checked: what a table's own metadata says is checked here.
        "expression": _check("expression", column.expression),
        "function": None if function is None else msgspec.to_builtins(function),
        "inputs": list(column.inputs),
        "data_type": list_group(column)[0].data_type,
        "binding": column.binding,
        "where": _check("where", request.where),
        "errors_only": request.errors_only,
        "read_version": request.read_version,
        **request.options,
        "resources": None if function is None else msgspec.to_builtins(function.needs),
        "watermark": None,
        "watermarks": [],
    }


def _follow(spec: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """What a function's columns are called, and the function itself, since the job was queued."""
    columns = [output["column"] for output in now["outputs"]]
    return {
        "column": spec["column"] if spec["column"] in columns else columns[0],
        "columns": columns,
        "function": now,
        "resources": now["needs"],
    }


async def _estimate(tx: Transaction, column: Computed, plan: Mapping[str, Any]) -> float | None:
    """Seconds on one core, by the rate that was measured last; None when none was."""
    rate = None if column.function is None else await functions.find_rate(tx, column.function)
    return None if rate is None else round(plan["function_calls"] / rate, 3)


async def _enqueue(
    tx: Transaction,
    table: Table,
    request: Backfill,
    column: Computed,
    cluster: str,
    max_attempts: int,
    origin: Origin,
) -> str:
    now = await tables.get(tx, table.identifier)
    if now.id != table.id:
        raise tables.missing(table.identifier)
    await computed_columns.record_in(tx, table, request.branch, list_group(column))
    new = NewJob(
        kind=BACKFILL,
        object=show(table.identifier),
        target=f"{table}.{column.columns[0]}",
        # The columns of a function are filled together, and it goes on through renames.
        slot=f"{table.id}/{request.branch}/"
        + (column.name if column.function is None else column.binding),
        spec=make_spec(table, request, column),
        cluster=cluster,
        manifest=await environments.choose_in(tx, request.manifest, column.manifest),
    )
    id = await jobs.enqueue_in(tx, new, max_attempts)
    await idempotency.use(tx, origin, id)
    return id
