"""Transactions: a record of each change of the catalog, and properties that clients set on it.

Every change records one, already finished, in its own SQL transaction. A commit through the catalog
carries Lance's own transaction id, so the same id works here and in the dataset.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, TransactionNotFound
from penstock.model.origins import NOBODY, Origin
from penstock.model.properties import decode_properties, encode_properties

SUCCEEDED = "SUCCEEDED"
STATUSES = ("QUEUED", "RUNNING", SUCCEEDED, "FAILED", "CANCELED")
DAY_MILLIS = 86_400_000


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    id: str
    status: str
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class SetStatus:
    status: str


@dataclass(frozen=True, slots=True)
class SetProperty:
    key: str
    value: str
    mode: str  # overwrite | fail | skip


@dataclass(frozen=True, slots=True)
class UnsetProperty:
    key: str
    mode: str  # skip | fail


Action = SetStatus | SetProperty | UnsetProperty


async def record(
    tx: Transaction,
    operation: str,
    target: str,
    origin: Origin = NOBODY,
    *,
    id: str = "",
    notes: idempotency.Notes | None = None,
) -> str:
    """Record a change in its SQL transaction, under its idempotency keys; returns its id.

    `notes` are stored with the keys.
    """
    id = id or str(uuid.uuid4())
    properties = {"trace_id": origin.trace_id} if origin.trace_id else {}
    await idempotency.use(tx, origin, id, notes)
    await tx.fetch(
        "INSERT INTO transactions (id, operation, target, status, properties, created_at, "
        "principal) VALUES ($1, $2, $3, $4, $5, now_millis(), $6) ON CONFLICT DO NOTHING",
        id,
        operation,
        target,
        SUCCEEDED,
        encode_properties(properties),
        origin.principal,
    )
    return id


async def get(tx: Transaction, id: str) -> TransactionRecord:
    row = await tx.fetch_one(
        "SELECT status, operation, target, properties, created_at FROM transactions WHERE id = $1",
        id,
    )
    if row is None:
        raise missing(id)
    status, operation, target, properties, created_at = row
    known = {"kind": operation, "target": target, "created_at": str(created_at)}
    return TransactionRecord(id, status, decode_properties(properties) | known)


async def find_maker(tx: Transaction, id: str) -> str | None:
    """Who made a transaction; None when there is none with this id."""
    row = await tx.fetch_one("SELECT principal FROM transactions WHERE id = $1", id)
    return None if row is None else row[0]


def missing(id: str) -> TransactionNotFound:
    return TransactionNotFound(
        f"transaction {id!r} does not exist",
        detail="check the id; finished transactions are kept for catalog.transaction_days",
    )


async def forget(tx: Transaction, id: str) -> None:
    """Withdraw the record of a change that did not happen."""
    await tx.fetch("DELETE FROM transactions WHERE id = $1", id)


async def alter(
    catalog: Catalog, id: str, actions: Sequence[Action], origin: Origin = NOBODY
) -> TransactionRecord:
    """Apply all actions or none."""
    return await catalog.database.write(_alter, id, actions, origin)


async def purge(catalog: Catalog) -> None:
    """Delete transactions that are older than the retention time."""
    await catalog.database.write(_purge, catalog.transaction_days * DAY_MILLIS)


def apply_actions(properties: dict[str, str], actions: Sequence[Action]) -> dict[str, str]:
    """The properties after the actions."""
    result = dict(properties)
    for action in actions:
        match action:
            case SetStatus():
                pass  # all transactions here are finished, and stay so
            case SetProperty(key, value, mode):
                if mode == "fail" and key in result:
                    raise InvalidRequest(
                        f"property {key!r} is set already", detail="use mode overwrite or skip"
                    )
                if mode == "overwrite" or key not in result:
                    result[key] = value
            case UnsetProperty(key, mode):
                if mode == "fail" and key not in result:
                    raise InvalidRequest(f"property {key!r} is not set", detail="use mode skip")
                result.pop(key, None)
    return result


async def _alter(
    tx: Transaction, id: str, actions: Sequence[Action], origin: Origin
) -> TransactionRecord:
    # Locked first, so that on PostgreSQL two alterations follow each other.
    row = await tx.fetch_one(
        "UPDATE transactions SET id = id WHERE id = $1 RETURNING properties", id
    )
    if row is None:
        return await get(tx, id)
    await idempotency.use(tx, origin, id)
    changed = apply_actions(decode_properties(row[0]), actions)
    await tx.fetch(
        "UPDATE transactions SET properties = $2 WHERE id = $1", id, encode_properties(changed)
    )
    return await get(tx, id)


async def _purge(tx: Transaction, keep_millis: int) -> None:
    await tx.fetch("DELETE FROM transactions WHERE created_at < now_millis() - $1", keep_millis)
