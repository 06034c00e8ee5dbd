"""Request, explain and record backfills of bound columns.

The catalog keeps a column's last watermarks, newest first: which versions its backfills covered.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import column_records, declarations, watermarks
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_code, functions
from penstock.catalog.jobs import environments, jobs
from penstock.catalog.jobs.due import PASSING
from penstock.catalog.names import idempotency, tables
from penstock.catalog.versions import reconcile
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, PenstockError
from penstock.jobs.backfill.plan import Watermark
from penstock.jobs.doors import backfill_explain
from penstock.jobs.specs import BACKFILL, BackfillSpec, ColumnSpec
from penstock.lance.columns import computed
from penstock.lance.columns.computed import ComputedColumn, list_group
from penstock.lance.doors import lance
from penstock.lance.expressions.check import check_expression
from penstock.lance.session.remote import Location
from penstock.model.functions import Function
from penstock.model.identifiers import from_path, show
from penstock.model.jobs import NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.slots import slot_of_column
from penstock.model.tables import Table

COUNTS = ("rows_by_state", "stale_by_reason")

C = TypeVar("C", bound=ColumnSpec)


@dataclass(frozen=True, slots=True)
class BackfillRequest:
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
    catalog: Catalog, table: Table, request: BackfillRequest, origin: Origin = NOBODY
) -> str:
    """Check a backfill, and queue it; returns the id of the job."""
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
    catalog: Catalog,
    table: Table,
    request: BackfillRequest,
    error_rows: Collection[int] | None = None,
) -> dict[str, Any]:
    """The plan that a backfill would carry out, as data; `error_rows` come from the ledger."""
    catalog.queue.check_cluster(request.cluster)
    await catalog.database.read(environments.resolve_in, request.manifest)
    column = await check(catalog, table, request)
    spec = make_spec(BackfillSpec, table, request, column, **request.options)
    found = await complete_spec(catalog.database, spec) or spec
    uri = catalog.lake.place(table.location).uri
    location = Location(uri, request.branch, catalog.lake.options)

    def work(dataset: "lance.LanceDataset") -> dict[str, Any]:
        return backfill_explain.explain_backfill(dataset, found, location, error_rows)

    plan = await datasets.read(catalog, table, request.branch, request.read_version, work)
    return plan | {"estimated_seconds": await _estimate(catalog.database, column, plan)}


async def count_rows(
    catalog: Catalog, table: Table, branch: str, told: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Descriptions of bound columns with their rows counted; it reads as much as a plan does."""
    rows = await catalog.database.fetch(
        "SELECT name, binding FROM columns WHERE table_id = $1 AND branch = $2", table.id, branch
    )
    groups = {row[0]: row[1] for row in rows}
    # The columns of one function are filled together, so they share their row states.
    counted: dict[str, dict[str, Any]] = {}
    for name, column in told.items():
        group = groups.get(name, name)
        if column["rows_by_state"] is None and group not in counted:
            counted[group] = await _count_column(catalog, table, branch, name)
    return {name: column | counted.get(groups.get(name, name), {}) for name, column in told.items()}


async def _count_column(catalog: Catalog, table: Table, branch: str, name: str) -> dict[str, Any]:
    try:
        plan = await explain_backfill(catalog, table, BackfillRequest(name, branch, {}))
    except PASSING:
        raise
    except PenstockError:
        # Why the column cannot be filled is reported when a backfill is requested.
        return watermarks.show_states(None)
    return {"stale": plan["rows_by_state"]["stale"] > 0, **{key: plan[key] for key in COUNTS}}


async def complete(
    tx: Transaction, spec: BackfillSpec, target: str
) -> tuple[BackfillSpec | None, str]:
    """The spec of a backfill when it is leased; None and a reason when there is nothing to fill."""
    found = await complete_spec(tx, spec)
    if found is None:
        return None, f"the table of {target} was dropped"
    if not await is_bound(tx, spec):
        return None, f"{target} was dropped or declared anew since the backfill was requested"
    if found.function is not None:
        await functions.check_enabled(tx, found.function.registered)
    return found, ""


async def complete_spec(tx: Transaction, spec: C) -> C | None:
    """The spec with the names and watermarks of this moment; None when the table was dropped."""
    row = await tx.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", spec.table_id)
    if row is None:
        return None
    found = await tx.fetch_one(
        "SELECT watermarks, function FROM columns "
        "WHERE table_id = $1 AND branch = $2 AND binding = $3 ORDER BY name LIMIT 1",
        *(spec.table_id, spec.branch, spec.binding),
    )
    known, function = (None, None) if found is None else found
    marks = () if known is None else msgspec.json.decode(known, type=tuple[Watermark, ...])
    now = structs.replace(
        spec,
        table=(*from_path(row[0]), row[1]),
        watermark=marks[0] if marks else None,
        watermarks=marks,
    )
    if function is None:
        return now
    declared = msgspec.json.decode(function, type=Function)
    # New code counts only if it was declared here; the mirror only shows what the table says.
    return _follow(now, declared) if await function_code.is_known(tx, declared.sha256) else now


async def is_bound(tx: Transaction, spec: ColumnSpec) -> bool:
    """Whether the column of a job's spec is still bound as it was when the job was queued."""
    if not spec.binding:
        return True
    row = await tx.fetch_one(
        "SELECT 1 FROM columns WHERE table_id = $1 AND branch = $2 AND binding = $3 LIMIT 1",
        *(spec.table_id, spec.branch, spec.binding),
    )
    return row is not None


async def record_watermark(tx: Transaction, spec: BackfillSpec, result: Mapping[str, Any]) -> None:
    """Record how far a column is filled, in the transaction that ends the job."""
    if spec.function is not None:
        await function_code.record_rate(tx, spec.function, result)
    watermark: Any = result.get("watermark")
    try:
        msgspec.convert(watermark, Watermark)
    except msgspec.ValidationError:
        return
    key = spec.table_id, spec.branch, spec.binding
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


async def check(catalog: Catalog, table: Table, request: BackfillRequest) -> ComputedColumn:
    """The column that a request names; raises what is known to be wrong with the request."""
    if request.read_version is not None:
        await reconcile.get_version_of_branch(catalog, table, request.branch, request.read_version)

    def work(dataset: "lance.LanceDataset") -> ComputedColumn:
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


def make_spec(
    kind: type[C], table: Table, request: BackfillRequest, column: ComputedColumn, **more: Any
) -> C:
    """The spec for a runner; `complete` adds the rest when the job is leased."""
    function = column.function
    return kind(
        table=table.identifier,
        table_id=table.id,
        column=column.columns[0],
        columns=tuple(column.columns),
        branch=request.branch,
        # In the normalised form: the metadata of a table is checked here, too.
        expression=_check("expression", column.expression),
        declared=_check("expression", column.declared),
        function=function,
        inputs=tuple(column.inputs),
        data_type=list_group(column)[0].data_type,
        binding=column.binding,
        where=_check("where", request.where),
        errors_only=request.errors_only,
        read_version=request.read_version,
        resources=None if function is None else function.needs,
        **more,
    )


def _follow(spec: C, function: Function) -> C:
    """The spec with the function as it is by now, and with what its columns are called."""
    columns = tuple(output.column for output in function.outputs)
    return structs.replace(
        spec,
        column=spec.column if spec.column in columns else columns[0],
        columns=columns,
        function=function,
        resources=function.needs,
    )


async def _estimate(
    tx: Transaction, column: ComputedColumn, plan: Mapping[str, Any]
) -> float | None:
    """Seconds on one core, by the last measured rate; None without one."""
    rate = None if column.function is None else await function_code.find_rate(tx, column.function)
    return None if rate is None else round(plan["function_calls"] / rate, 3)


async def _enqueue(
    tx: Transaction,
    table: Table,
    request: BackfillRequest,
    column: ComputedColumn,
    cluster: str,
    max_attempts: int,
    origin: Origin,
) -> str:
    now = await tables.get(tx, table.identifier)
    if now.id != table.id:
        raise tables.missing(table.identifier)
    await column_records.record_in(tx, table, request.branch, list_group(column))
    new = NewJob(
        kind=BACKFILL,
        object=show(table.identifier),
        target=f"{table}.{column.columns[0]}",
        # All columns of a function are filled together, and a rename does not change the slot.
        slot=slot_of_column(
            table.id, request.branch, column.name if column.function is None else column.binding
        ),
        spec=make_spec(BackfillSpec, table, request, column, **request.options),
        cluster=cluster,
        manifest=await environments.choose_in(tx, request.manifest, column.manifest),
    )
    id = await jobs.enqueue_in(tx, new, max_attempts)
    await idempotency.use(tx, origin, id)
    return id
