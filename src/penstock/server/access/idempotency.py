"""Requests with an `Idempotency-Key`: one effect, and the same answer each time.

The catalog records the key in the transaction of the effect; here the answer is stored with it, and
replayed. Answers that a retry may change (a lost race, an overload, a missing right, an error of
ours) are not stored: the request then simply runs again.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from uuid import UUID

from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.catalog.names.idempotency import REMADE, UNANSWERED, KeyRecord
from penstock.crash import crash_point
from penstock.errors import (
    ConcurrentCommit,
    InvalidRequest,
    KeyMismatch,
    KeyUsed,
    PenstockError,
    RequirementFailed,
    Unavailable,
)
from penstock.model.origins import IdempotencyKey
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import NOT_STORED, ClientGone, Message, Receive, Reply

log = logging.getLogger(__name__)

HEADER = "idempotency-key"
# Headers that are part of the request, such as a table's location.
MEANT_HEADERS = "x-lance-table-"
NOT_KEPT = (401, 403, 419, 429)
# How long to wait for another server that has the effect, but has not stored its answer yet.
ANSWER_SECONDS = 5
PAUSE_SECONDS = 0.05
# How much a client may still send after a refusal; beyond that the answer is not stored.
MAX_DRAINED_BYTES = 64 * 1024 * 1024

MAX_KEPT_BYTES = 64 * 1024

Recover = Callable[[KeyRecord], Awaitable[Reply]]


class Arrival:
    """A request with a key; its body is digested as it arrives."""

    def __init__(self, key: IdempotencyKey, receive: Receive) -> None:
        self.key = key
        self.is_complete = False
        self._receive = receive

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.key.digest.update(message.get("body", b""))
            self.is_complete = not message.get("more_body")
        return message

    async def drain(self, most: int | None = None) -> None:
        """Read the rest of the body, only for its digest."""
        drained = 0
        while not self.is_complete and (most is None or drained <= most):
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            drained += len(message.get("body", b""))


class IdempotentRequests:
    """The requests with keys that this server is answering."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._running: dict[tuple[str, str], asyncio.Event] = {}

    async def answer(
        self,
        arrival: Arrival,
        run: Callable[[], Awaitable[Reply]],
        fail: Callable[[PenstockError], Reply],
        recover: Recover,
    ) -> Reply:
        """Run the request, or replay the answer of its key; duplicates wait for the first.

        `recover` rebuilds an answer that was lost.
        """
        id = (arrival.key.principal, arrival.key.value)
        while (running := self._running.get(id)) is not None:
            await running.wait()
        self._running[id] = asyncio.Event()
        try:
            return await self._answer(arrival, run, fail, recover)
        finally:
            self._running.pop(id).set()

    async def find_answer(self, arrival: Arrival) -> Reply | None:
        """The stored answer of a key, for a caller that would no longer be let in.

        The request may have removed its object, and with it the right to it.
        """
        used = await idempotency.find(self._catalog.database, arrival.key)
        if used is None or used.status in (UNANSWERED, REMADE):
            return None
        await arrival.drain()
        _check_same(arrival, used)
        return Reply(used.status, used.answer.encode())

    async def _answer(
        self,
        arrival: Arrival,
        run: Callable[[], Awaitable[Reply]],
        fail: Callable[[PenstockError], Reply],
        recover: Recover,
    ) -> Reply:
        database, key = self._catalog.database, arrival.key
        used = await idempotency.find(database, key)
        if used is not None and (kept := await self._replay(arrival, used, recover)) is not None:
            return kept
        used = None
        try:
            reply = await run()
        except PenstockError as error:
            # It may have failed because of what another arrival of it did.
            used = await idempotency.find(database, key)
            if used is None and isinstance(error, KeyUsed):
                raise ConcurrentCommit(
                    "the first arrival of this request was taken back", detail="send it again"
                ) from error
            if used is None and not _is_final(error):
                raise
            reply = fail(error)
        if used is None:
            crash_point("answer not noted")
            used = await self._keep(arrival, reply)
        kept = None if used is None else await self._replay(arrival, used, recover)
        return reply if kept is None else kept

    async def _keep(self, arrival: Arrival, reply: Reply) -> KeyRecord | None:
        if reply.status >= 500 or reply.status in NOT_KEPT:
            return None
        # Without its whole body, nobody could tell whether the next one is the same.
        await arrival.drain(MAX_DRAINED_BYTES)
        if not arrival.is_complete:
            return None
        # Long answers are rebuilt when asked for again, and so are those with secrets, without
        # them.
        is_remade = len(reply.body) > MAX_KEPT_BYTES or reply.headers == NOT_STORED
        is_remade = is_remade and reply.status < 300
        status, answer = (REMADE, b"") if is_remade else (reply.status, reply.body)
        try:
            return await idempotency.record_answer(
                self._catalog, arrival.key, status, answer.decode()
            )
        except Unavailable as error:
            # The effect, if any, is durable under its key; the answer can be rebuilt.
            log.warning("the answer under a key was not kept: %s", error.message)
            return None

    async def _replay(self, arrival: Arrival, used: KeyRecord, recover: Recover) -> Reply | None:
        """The stored answer of a key; None when its effect turns out not to have happened."""
        used = await self._await_answer(arrival.key, used)
        if used.status == UNANSWERED:
            # A commit by path may have taken its place while no server could finish it.
            await maintenance.finish_commits(self._catalog, used.notes.get("parts", []))
            if await idempotency.find(self._catalog.database, arrival.key) is None:
                return None
        # Not earlier: a request that runs after all needs its body.
        await arrival.drain()
        _check_same(arrival, used)
        if used.status not in (UNANSWERED, REMADE):
            return Reply(used.status, used.answer.encode())
        reply = await recover(used)
        if len(reply.body) <= MAX_KEPT_BYTES:
            await idempotency.record_recovered(
                self._catalog, arrival.key, reply.status, reply.body.decode()
            )
        return reply

    async def _await_answer(self, key: IdempotencyKey, used: KeyRecord) -> KeyRecord:
        # The only server of a database runs no duplicate now, so nobody else will store the answer.
        wait = 0 if self._catalog.database.kind == "sqlite" else ANSWER_SECONDS
        deadline = time.monotonic() + wait
        while used.status == UNANSWERED and time.monotonic() < deadline:
            await asyncio.sleep(PAUSE_SECONDS)
            used = await idempotency.find(self._catalog.database, key) or used
        return used


def _check_same(arrival: Arrival, used: KeyRecord) -> None:
    if used.fingerprint != arrival.key.fingerprint:
        raise KeyMismatch(
            f"Idempotency-Key {arrival.key.value} was used for another request",
            detail="use a new key for each operation, and the same one only to repeat it",
        )


def _is_final(error: PenstockError) -> bool:
    """Whether the request would fail the same way again; a lost race would not."""
    return isinstance(error, RequirementFailed) or not isinstance(error, ConcurrentCommit)


def arrive(exchange: Exchange, principal: str) -> Arrival | None:
    """The arrival of a request with a key; None when its key is empty."""
    value = exchange.headers.values[HEADER].strip()
    if sum(name == HEADER.encode() for name, _ in exchange.scope["headers"]) > 1:
        raise InvalidRequest(
            "Idempotency-Key is given more than once", detail="send one header with one UUID"
        )
    if not value:
        return None
    try:
        normal = str(UUID(value))
    except ValueError:
        normal = ""
    if normal != value.lower():
        raise InvalidRequest(
            f"Idempotency-Key {value[:64]!r} is not a UUID",
            detail="send one of 36 characters, version 7 if you can",
        )
    key = IdempotencyKey(principal, normal)
    scope = exchange.scope
    target: bytes = scope["raw_path"].partition(b"?")[0] + b"?" + scope["query_string"]
    key.digest.update(exchange.method.encode() + b" " + target + b"\n")
    for name, text in sorted(exchange.headers.values.items()):
        if name.startswith(MEANT_HEADERS):
            key.digest.update(f"{name}: {text}\n".encode())
    return Arrival(key, exchange.receive)
