"""Idempotency keys: a repeated request has no second effect.

The key is recorded in the transaction of the effect, so neither is ever durable without the other;
the answer is added when it is known. `request` tells one arrival of a request from another: its own
later statements may reuse a key that it recorded itself.
"""

from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.database.interface import Row, Transaction
from penstock.errors import KeyUsed
from penstock.model.origins import IdempotencyKey, Origin

# The effect is durable, but its answer is not recorded (yet).
UNANSWERED = 0
# Answered, but the answer was too long to store.
REMADE = -1
# Kept longer than promised, for late clocks and retries.
GRACE_SECONDS = 300

_COLUMNS = (
    "principal, value, fingerprint, request, transaction_id, notes, status, answer, created_at"
)
Notes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """A stored key: the request it came with, its effect, and its answer.

    An answer can be rebuilt from `notes` when the first one is lost.
    """

    fingerprint: str
    transaction_id: str
    notes: Notes
    status: int
    answer: str


async def use(
    tx: Transaction, origin: Origin, transaction_id: str, notes: Notes | None = None
) -> None:
    """Record the keys of an effect in its transaction; raises KeyUsed for one that exists."""
    if not origin.keys:
        return
    text = msgspec.json.encode(notes or {}).decode()
    for key in origin.keys:
        mine = await tx.fetch_one(
            f"INSERT INTO idempotency_keys ({_COLUMNS}) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7, '', now_millis()) "
            "ON CONFLICT (principal, value) DO UPDATE SET "
            "transaction_id = excluded.transaction_id, notes = excluded.notes "
            "WHERE idempotency_keys.request = excluded.request RETURNING value",
            *(key.principal, key.value, key.fingerprint, key.request),
            *(transaction_id, text, UNANSWERED),
        )
        if mine is None:
            raise KeyUsed()


async def forget(tx: Transaction, origin: Origin) -> None:
    """Withdraw a key whose effect did not happen."""
    for key in origin.keys:
        await tx.fetch(
            "DELETE FROM idempotency_keys WHERE principal = $1 AND value = $2 AND request = $3",
            *(key.principal, key.value, key.request),
        )


async def forget_effect(tx: Transaction, transaction_id: str) -> None:
    """Delete the keys of an effect that was undone later; their notes name it."""
    if transaction_id:
        await tx.fetch(
            "DELETE FROM idempotency_keys WHERE transaction_id = $1 OR notes LIKE $2",
            *(transaction_id, f'%"parts":%"{transaction_id}"%'),
        )


async def forget_answers(tx: Transaction) -> None:
    """Delete stored answers, because they may name old places; they are rebuilt when needed."""
    await tx.fetch(
        "UPDATE idempotency_keys SET status = $1, answer = '' WHERE status BETWEEN 200 AND 299",
        REMADE,
    )


async def find(tx: Transaction, key: IdempotencyKey) -> KeyRecord | None:
    row = await tx.fetch_one(
        "SELECT fingerprint, transaction_id, notes, status, answer FROM idempotency_keys "
        "WHERE principal = $1 AND value = $2",
        *(key.principal, key.value),
    )
    return None if row is None else _to_used(row)


async def record_answer(
    catalog: Catalog, key: IdempotencyKey, status: int, answer: str
) -> KeyRecord | None:
    """Store the answer to a request; returns one that another arrival stored before."""
    return await catalog.database.write(_record_answer, key, status, answer)


async def record_recovered(catalog: Catalog, key: IdempotencyKey, status: int, answer: str) -> None:
    """Store an answer that was rebuilt for an effect without one."""
    await catalog.database.write(_record_recovered, key, status, answer)


async def purge(catalog: Catalog) -> None:
    """Delete keys that are older than promised, plus a grace period."""
    keep = (catalog.idempotency_seconds + GRACE_SECONDS) * 1000
    await catalog.database.write(_purge, keep)


async def _record_answer(
    tx: Transaction, key: IdempotencyKey, status: int, answer: str
) -> KeyRecord | None:
    mine = await tx.fetch_one(
        f"INSERT INTO idempotency_keys ({_COLUMNS}) "
        "VALUES ($1, $2, $3, $4, '', '{}', $5, $6, now_millis()) "
        "ON CONFLICT (principal, value) DO UPDATE SET status = excluded.status, "
        "answer = excluded.answer WHERE idempotency_keys.request = excluded.request "
        "RETURNING value",
        *(key.principal, key.value, key.fingerprint, key.request, status, answer),
    )
    return None if mine is not None else await find(tx, key)


async def _record_recovered(tx: Transaction, key: IdempotencyKey, status: int, answer: str) -> None:
    await tx.fetch(
        "UPDATE idempotency_keys SET status = $3, answer = $4 "
        "WHERE principal = $1 AND value = $2 AND status = $5",
        *(key.principal, key.value, status, answer, UNANSWERED),
    )


async def _purge(tx: Transaction, keep_millis: int) -> None:
    await tx.fetch("DELETE FROM idempotency_keys WHERE created_at < now_millis() - $1", keep_millis)


def _to_used(row: Row) -> KeyRecord:
    fingerprint, transaction_id, notes, status, answer = row
    return KeyRecord(fingerprint, transaction_id, msgspec.json.decode(notes), status, answer)
