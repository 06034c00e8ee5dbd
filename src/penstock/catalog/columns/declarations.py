"""Declared functions: which ones a table's columns may use, because someone allowed to bring code
said so.

Anybody who can commit a version, or register a folder, can write the metadata that binds a column.
So a function runs only for the table that it was declared for, with the inputs, outputs and options
of that declaration: knowing the hash of somebody's code is not enough to run it or to read it.
"""

import hashlib
from collections.abc import Sequence

import msgspec
from msgspec import structs

from penstock.database.interface import Transaction
from penstock.errors import InvalidTableState
from penstock.lance.columns.bindings import RedeclaredColumn
from penstock.lance.columns.computed import ComputedColumn
from penstock.model.functions import Function
from penstock.model.tables import Table

# The manifests that a function was declared with: their checksums, "" for none, None for any.
Manifests = frozenset[str | None]


async def declare_in(tx: Transaction, table: Table, columns: Sequence[ComputedColumn]) -> None:
    """Record the functions of columns as they are now."""
    for column in columns:
        if column.function is not None:
            await _insert(tx, table, column, _checksum(column.manifest))


async def declare_again_in(
    tx: Transaction, table: Table, changes: Sequence[RedeclaredColumn]
) -> None:
    """Record changed functions; the request must bring code that was never declared before."""
    for each in changes:
        known = await find_in(tx, table, each.before)
        if known is None and not each.brings_code:
            continue
        checksum = _checksum(each.column.manifest)
        is_meant = each.brings_manifest or (known is not None and _has(known, each.before))
        await _insert(tx, table, each.column, checksum if is_meant else "")


async def follow_in(
    tx: Transaction, table: Table, before: ComputedColumn, after: ComputedColumn
) -> None:
    """Record a function that reads columns by their new names, if it was declared before."""
    for manifest in await find_in(tx, table, before) or ():
        await _insert(tx, table, after, manifest)


async def find_in(tx: Transaction, table: Table, column: ComputedColumn) -> Manifests | None:
    """The manifests that a column's function was declared with; None if it was not declared."""
    if column.function is None:
        return None
    rows = await tx.fetch(
        "SELECT function, manifest FROM declarations WHERE table_id = $1 AND binding = $2",
        table.id,
        column.binding,
    )
    wanted = _without_names(column.function)
    known = [(msgspec.json.decode(row[0], type=Function), row[1]) for row in rows]
    found = frozenset(manifest for each, manifest in known if _without_names(each) == wanted)
    return found or None


async def keep_declared(
    tx: Transaction, table: Table, columns: Sequence[ComputedColumn]
) -> list[ComputedColumn]:
    """The columns that are bound here: by SQL, or by a declared function."""
    return [
        each
        for each in columns
        if each.function is None or await find_in(tx, table, each) is not None
    ]


async def check(
    tx: Transaction, table: Table, column: ComputedColumn, *, with_manifest: bool = False
) -> None:
    """Refuse a column whose metadata names a function or environment not declared for it."""
    if column.function is None:
        return
    known = await find_in(tx, table, column)
    if known is None:
        raise InvalidTableState(
            f"the metadata of column {column.name!r} names function {column.function.name!r}, "
            f"{column.function.sha256}, which was not declared for table {table}",
            detail="alter the column with the function's udf to bring it here, or drop it",
        )
    if with_manifest and not _has(known, column):
        raise InvalidTableState(
            f"the manifest in the metadata of column {column.name!r} was not declared here",
            detail="alter the column with the manifest, or name one in the request",
        )


async def _insert(
    tx: Transaction, table: Table, column: ComputedColumn, manifest: str | None
) -> None:
    assert column.function is not None
    function = msgspec.json.encode(_without_names(column.function)).decode()
    await tx.fetch(
        "INSERT INTO declarations (table_id, binding, digest, function, manifest, created_at) "
        "VALUES ($1, $2, $3, $4, $5, now_millis()) ON CONFLICT DO NOTHING",
        table.id,
        column.binding,
        hashlib.sha256(f"{manifest} {function}".encode()).hexdigest(),
        function,
        manifest,
    )


def _without_names(function: Function) -> Function:
    """The function without its column names, which a rename changes."""
    outputs = tuple(structs.replace(output, column="") for output in function.outputs)
    return structs.replace(function, outputs=outputs)


def _has(known: Manifests, column: ComputedColumn) -> bool:
    return None in known or column.manifest is None or _checksum(column.manifest) in known


def _checksum(manifest: str | None) -> str:
    return "" if manifest is None else hashlib.sha256(manifest.encode()).hexdigest()
