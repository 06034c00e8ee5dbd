"""Admission: authentication, idempotency keys and rights around a call, for both protocols."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from penstock.catalog.names.idempotency import KeyRecord
from penstock.errors import NotFound, PenstockError
from penstock.model.principals import Identity
from penstock.model.rights import READ, Standing
from penstock.server.access.gate import Gate
from penstock.server.access.idempotency import HEADER, Arrival, IdempotentRequests, arrive
from penstock.server.access.rules import PathNames
from penstock.server.operation import Operation
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import Receive, Reply


class AdmittedCall(Protocol):
    """What admission reads from a call, and sets on it."""

    identity: Identity | None
    only: tuple[str, ...] | None


A = TypeVar("A", bound=AdmittedCall)


@dataclass(frozen=True, slots=True)
class Admission:
    """The gate, if authentication is on, and the idempotency keys in use."""

    gate: Gate | None
    once: IdempotentRequests

    def arrive(self, exchange: Exchange, operation: Operation[A, object]) -> Arrival | None:
        """The idempotency key of a change, if it has one."""
        if operation.is_change and HEADER in exchange.headers.values:
            return arrive(exchange, exchange.principal)
        return None

    async def answer(
        self,
        exchange: Exchange,
        operation: Operation[A, object],
        call: A,
        names: PathNames,
        arrival: Arrival | None,
        run: Callable[[Standing | None], Awaitable[Reply]],
        fail: Callable[[PenstockError, Exchange], Reply],
        recover: Callable[[KeyRecord], Awaitable[Reply]],
    ) -> Reply:
        """Refuse a call without the right to it; run it, or replay the answer of its key."""
        standing = None
        if self.gate is not None and call.identity is not None:
            try:
                standing = await self.gate.admit(
                    call.identity, operation.needs, call, names, exchange
                )
            except NotFound:
                # Its object may have been removed by its first arrival.
                kept = None if arrival is None else await self.once.find_answer(arrival)
                if kept is None:
                    raise
                return kept
            call.only = None if standing.has(READ) else call.identity.grantees
        if arrival is None:
            return await run(standing)
        return await self.once.answer(
            arrival, lambda: run(standing), lambda error: fail(error, exchange), recover
        )


def receive_of(exchange: Exchange, arrival: Arrival | None) -> Receive:
    """The source of a request's body; with a key, it is digested on the way."""
    return exchange.receive if arrival is None else arrival.receive
