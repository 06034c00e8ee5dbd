"""Computed columns in the catalog: their bindings, how far they are filled, and backfills.

The dataset's field metadata is what binds a column, because it travels with branches, restores and
files. The record here mirrors it, and adds the watermark: what the last backfill covered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.catalog import data, idempotency, jobs, manifests, reconcile, tables
from penstock.catalog.catalog import Catalog
from penstock.database.interface import Transaction
from penstock.datasets import computed
from penstock.datasets.computed import Computed
from penstock.model.identifiers import from_path, show
from penstock.model.jobs import BACKFILL, NewJob
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table

if TYPE_CHECKING:
    from lance import LanceDataset


@dataclass(frozen=True, slots=True)
class Backfill:
    """A request to fill a computed column; `options` go into the job's spec as they are."""

    column: str
    branch: str
    options: Mapping[str, Any]
    read_version: int | None = None
    where: str | None = None
    cluster: str | None = None
    manifest: str | None = None


async def add(
    catalog: Catalog,
    table: Table,
    branch: str,
    expressions: Mapping[str, str],
    origin: Origin = NOBODY,
) -> int:
    """Add computed columns, all null; returns the version."""

    def work(dataset: "LanceDataset") -> tuple[int, list[Computed]]:
        version, bindings = computed.add_computed(dataset, expressions)
        added = computed.list_computed(dataset.schema)
        return version, [column for column in added if column.binding in bindings]

    version, added = await data.change(catalog, table, branch, work, origin)
    await catalog.database.write(_record, table, branch, added)
    return version


async def rename(catalog: Catalog, table: Table, branch: str, names: Mapping[str, str]) -> None:
    """Follow columns that got other names."""
    if names:
        await catalog.database.write(_rename, table, branch, names)


async def forget(catalog: Catalog, table: Table, branch: str, names: Sequence[str]) -> None:
    """Follow columns that were dropped."""
    await catalog.database.write(_forget, table, branch, names)


async def request_backfill(
    catalog: Catalog, table: Table, request: Backfill, origin: Origin = NOBODY
) -> str:
    """Check a backfill as far as that can be done now, and queue it; returns the job."""
    cluster = catalog.queue.check_cluster(request.cluster)
    column = await _check(catalog, table, request)
    id = await catalog.database.write(
        _enqueue, table, request, column, cluster, catalog.queue.max_attempts, origin
    )
    catalog.queue.ring()
    return id


async def explain_backfill(catalog: Catalog, table: Table, request: Backfill) -> dict[str, Any]:
    """The plan that a backfill would carry out, as data."""
    catalog.queue.check_cluster(request.cluster)
    await catalog.database.read(manifests.resolve_in, request.manifest)
    column = await _check(catalog, table, request)
    watermark = await _find_watermark(catalog.database, table.id, request.branch, column)
    spec = _make_spec(table, request, column)

    def work(dataset: "LanceDataset") -> dict[str, Any]:
        # Here, because planning is asked for rarely and a server of metadata never needs it.
        from penstock.datasets.snapshot import take_snapshot
        from penstock.pipeline.plan.backfill import Watermark, plan_backfill, to_options

        known = None if watermark is None else msgspec.convert(watermark, Watermark)
        snapshot = take_snapshot(dataset, column.name, column.inputs, request.where, known)
        return plan_backfill(snapshot, to_options(spec)).to_json()

    return await data.read(catalog, table, request.branch, request.read_version, work)


async def complete_spec(tx: Transaction, spec: dict[str, Any]) -> dict[str, Any] | None:
    """A job's spec with the table's name and the watermark of this moment; None without a table."""
    row = await tx.fetch_one("SELECT namespace, name FROM objects WHERE id = $1", spec["table_id"])
    if row is None:
        return None
    found = await tx.fetch_one(
        "SELECT watermark FROM columns WHERE table_id = $1 AND branch = $2 AND binding = $3",
        spec["table_id"],
        spec["branch"],
        spec["binding"],
    )
    known = found[0] if found is not None else None
    watermark = None if known is None else msgspec.json.decode(known)
    return spec | {"table": [*from_path(row[0]), row[1]], "watermark": watermark}


async def record_watermark(
    tx: Transaction, spec: Mapping[str, Any], result: Mapping[str, Any]
) -> None:
    """Note how far a column is filled now, in the transaction that ends the job."""
    watermark = result.get("watermark")
    if "watermark" not in result and "version" in result:
        # What took only a part of the rows covers no version.
        partial = spec.get("where") is not None or spec.get("num_frags") is not None
        watermark = None if partial else {"version": result["version"]}
    if watermark is not None:
        await tx.fetch(
            "UPDATE columns SET watermark = $4 "
            "WHERE table_id = $1 AND branch = $2 AND binding = $3",
            spec["table_id"],
            spec["branch"],
            spec["binding"],
            msgspec.json.encode(watermark).decode(),
        )


async def _check(catalog: Catalog, table: Table, request: Backfill) -> Computed:
    if request.read_version is not None:
        await reconcile.get_version_of_branch(catalog, table, request.branch, request.read_version)

    def work(dataset: "LanceDataset") -> Computed:
        column = computed.get_computed(dataset, request.column)
        computed.check_known(dataset, column)
        if request.where is not None:
            computed.check_where(dataset, request.where)
        return column

    return await data.read(catalog, table, request.branch, None, work)


def _make_spec(table: Table, request: Backfill, column: Computed) -> dict[str, Any]:
    return {
        "table": list(table.identifier),
        "table_id": table.id,
        "column": column.name,
        "branch": request.branch,
        "expression": column.expression,
        "inputs": list(column.inputs),
        "data_type": column.data_type,
        "binding": column.binding,
        "where": request.where,
        "read_version": request.read_version,
        **request.options,
        "watermark": None,
    }


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
    await _record(tx, table, request.branch, [column])
    new = NewJob(
        kind=BACKFILL,
        object=show(table.identifier),
        target=f"{table}.{column.name}",
        slot=f"{table.id}/{request.branch}/{column.name}",
        spec=_make_spec(table, request, column),
        cluster=cluster,
        manifest=await manifests.resolve_in(tx, request.manifest),
    )
    id = await jobs.enqueue_in(tx, new, max_attempts)
    await idempotency.use(tx, origin, id)
    return id


async def _record(tx: Transaction, table: Table, branch: str, columns: Sequence[Computed]) -> None:
    """Mirror bindings; the watermark of another column of that name is forgotten."""
    for column in columns:
        await tx.fetch(
            "INSERT INTO columns (table_id, branch, name, binding, expression, inputs, data_type, "
            "created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, now_millis()) "
            "ON CONFLICT (table_id, branch, name) DO UPDATE SET binding = excluded.binding, "
            "expression = excluded.expression, inputs = excluded.inputs, "
            "data_type = excluded.data_type, created_at = excluded.created_at, watermark = NULL "
            "WHERE columns.binding <> excluded.binding",
            table.id,
            branch,
            column.name,
            column.binding,
            column.expression,
            msgspec.json.encode(column.inputs).decode(),
            msgspec.json.encode(column.data_type).decode(),
        )


async def _rename(tx: Transaction, table: Table, branch: str, names: Mapping[str, str]) -> None:
    # Taken out first: two columns may swap their names.
    rows = []
    for old, new in names.items():
        rows += [
            (new, *row)
            for row in await tx.fetch(
                "DELETE FROM columns WHERE table_id = $1 AND branch = $2 AND name = $3 "
                "RETURNING binding, expression, inputs, data_type, watermark",
                table.id,
                branch,
                old,
            )
        ]
    for row in rows:
        await tx.fetch(
            "INSERT INTO columns (table_id, branch, name, binding, expression, inputs, data_type, "
            "watermark, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, now_millis())",
            table.id,
            branch,
            *row,
        )


async def _forget(tx: Transaction, table: Table, branch: str, names: Sequence[str]) -> None:
    for name in names:
        await tx.fetch(
            "DELETE FROM columns WHERE table_id = $1 AND branch = $2 AND name = $3",
            table.id,
            branch,
            name,
        )


async def _find_watermark(
    tx: Transaction, table_id: str, branch: str, column: Computed
) -> dict[str, Any] | None:
    spec = {"table_id": table_id, "branch": branch, "binding": column.binding}
    found = await complete_spec(tx, spec)
    return None if found is None else found["watermark"]
