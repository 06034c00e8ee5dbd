"""The code of functions by its hash, named or not, and the rate at which each last ran."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.database.interface import Transaction
from penstock.errors import InvalidTableState
from penstock.lance.columns import function_code as files
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Function
from penstock.model.tables import Table


async def store(catalog: Catalog, table: Table, codes: Sequence[FunctionCode]) -> None:
    """Store the code of functions beside the table that uses them."""
    place = catalog.lake.place(table.location)
    for code in codes:
        await catalog.lake.run(files.store, place, code.content)


async def ensure(catalog: Catalog, table: Table, function: Function) -> None:
    """Make sure that a function's code is beside the table, where a runner looks for it.

    Anyone who can write to the table's folder can put code there and bind a column to it, but only
    code that was declared here is ever run.
    """
    if not await is_known(catalog.database, function.sha256):
        raise InvalidTableState(
            f"the code of function {function.name!r}, {function.sha256}, is not in the catalog",
            detail="alter the column with the function's udf to bring it here",
        )
    place = catalog.lake.place(table.location)
    if await catalog.lake.run_briefly(place, files.exists, place, function.sha256):
        return
    content = await get(catalog.database, function.sha256)
    await catalog.lake.run(files.store, place, content)


async def is_known(tx: Transaction, sha256: str) -> bool:
    """Whether code was declared here."""
    sql = "SELECT 1 FROM function_code WHERE sha256 = $1"
    return await tx.fetch_one(sql, sha256) is not None


async def get(tx: Transaction, sha256: str) -> bytes:
    """Code that was declared here."""
    row = await tx.fetch_one("SELECT content FROM function_code WHERE sha256 = $1", sha256)
    assert row is not None
    return bytes(row[0])


async def record_in(tx: Transaction, function: Function, content: bytes) -> None:
    await store_in(tx, function.sha256, content, function.name, function.version)


async def store_in(tx: Transaction, sha256: str, content: bytes, name: str, version: str) -> None:
    """Store code by its hash; the same code under a new version keeps its measured rate."""
    await tx.fetch(
        "INSERT INTO function_code (sha256, content, name, version, created_at) "
        "VALUES ($1, $2, $3, $4, now_millis()) ON CONFLICT (sha256) DO UPDATE SET "
        "name = excluded.name, version = excluded.version",
        *(sha256, content, name, version),
    )


async def find_rate(tx: Transaction, function: Function) -> float | None:
    """Rows per second and core, of this code or else of other code of the same version."""
    row = await tx.fetch_one(
        "SELECT rate FROM function_code WHERE rate IS NOT NULL "
        "AND (sha256 = $1 OR (name = $2 AND version = $3)) "
        "ORDER BY CASE WHEN sha256 = $1 THEN 0 ELSE 1 END, created_at DESC LIMIT 1",
        function.sha256,
        function.name,
        function.version,
    )
    return None if row is None else float(row[0])


async def record_rate(tx: Transaction, function: Function, result: Mapping[str, Any]) -> None:
    """Record how fast a function was, as a runner measured it."""
    rate = result.get("rate")
    if not isinstance(rate, int | float) or isinstance(rate, bool):
        return
    if math.isfinite(rate) and rate > 0:
        await tx.fetch(
            "UPDATE function_code SET rate = $2 WHERE sha256 = $1", function.sha256, float(rate)
        )
