"""The catalog's mirror of bound columns: a row for each, in the transaction of what changes it."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.catalog.columns import declarations
from penstock.catalog.versions.commits import Undo
from penstock.database.interface import Row, Transaction
from penstock.lance.columns.computed import ComputedColumn
from penstock.lance.columns.following import Renaming
from penstock.model.tables import Table


async def record_in(
    tx: Transaction, table: Table, branch: str, columns: Sequence[ComputedColumn]
) -> None:
    """Mirror bindings; forgets how far an earlier column of that name was filled."""
    for column in columns:
        await tx.fetch(
            "INSERT INTO columns (table_id, branch, name, binding, expression, inputs, data_type, "
            "function, auto_backfill, created_at) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, now_millis()) "
            "ON CONFLICT (table_id, branch, name) DO UPDATE SET binding = excluded.binding, "
            "expression = excluded.expression, inputs = excluded.inputs, "
            "data_type = excluded.data_type, function = excluded.function, "
            "auto_backfill = excluded.auto_backfill, created_at = excluded.created_at, "
            "watermarks = CASE WHEN columns.binding = excluded.binding THEN columns.watermarks END "
            "WHERE columns.binding <> excluded.binding "
            "OR columns.expression <> excluded.expression OR columns.inputs <> excluded.inputs "
            "OR columns.function IS DISTINCT FROM excluded.function "
            "OR columns.auto_backfill <> excluded.auto_backfill",
            table.id,
            branch,
            column.name,
            column.binding,
            column.expression or "",
            msgspec.json.encode(column.inputs).decode(),
            msgspec.json.encode(column.data_type).decode(),
            None if column.function is None else msgspec.json.encode(column.function).decode(),
            int(column.auto_backfill),
        )


async def rename_in(tx: Transaction, table: Table, branch: str, renaming: Renaming) -> Undo:
    """Follow new names in declarations and in the mirror; returns how to undo the latter."""
    pairs = [
        pair for pair in zip(renaming.before, renaming.after, strict=True) if pair[0] != pair[1]
    ]
    changed = [after for _, after in pairs]
    moved = {before.name: after.name for before, after in pairs}
    # What is still known under one of the new names is gone.
    known = await _take(tx, table, branch, {*moved, *moved.values()})
    rows = [(moved[name], *rest) for name, *rest in known if name in moved]
    await _put(tx, table, branch, rows)
    for before, after in renaming.following:
        await declarations.follow_in(tx, table, before, after)
    await record_in(tx, table, branch, await declarations.keep_declared(tx, table, changed))

    async def undo(tx: Transaction) -> None:
        await _take(tx, table, branch, moved.values())
        await _put(tx, table, branch, known)

    return undo


async def _take(tx: Transaction, table: Table, branch: str, names: Iterable[str]) -> list[Row]:
    """Take columns out of the mirror: all at once, because two may swap names."""
    found: list[Row] = []
    for name in names:
        found += await tx.fetch(
            "DELETE FROM columns WHERE table_id = $1 AND branch = $2 AND name = $3 "
            "RETURNING name, binding, expression, inputs, data_type, function, auto_backfill, "
            "watermarks, created_at",
            *(table.id, branch, name),
        )
    return found


async def _put(tx: Transaction, table: Table, branch: str, rows: Sequence[Sequence[Any]]) -> None:
    for row in rows:
        await tx.fetch(
            "INSERT INTO columns (table_id, branch, name, binding, expression, inputs, data_type, "
            "function, auto_backfill, watermarks, created_at) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            *(table.id, branch, *row),
        )
