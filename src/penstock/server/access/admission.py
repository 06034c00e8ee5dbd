"""What both protocols do around a call: who asks, under which key, and with which right."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from penstock.catalog.names.idempotency import Used
from penstock.errors import NotFound, PenstockError
from penstock.model.principals import Identity
from penstock.model.rights import READ, Standing
from penstock.server.access.gate import Gate
from penstock.server.access.idempotency import HEADER, Arrival, Once, arrive
from penstock.server.access.rules import Names
from penstock.server.operation import Operation
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import Receive, Reply


class Admitted(Protocol):
    """What admission needs to know of a call, and what it tells it."""

    identity: Identity | None
    only: tuple[str, ...] | None


A = TypeVar("A", bound=Admitted)


@dataclass(frozen=True, slots=True)
class Admission:
    """The gate, if authentication is on, and the keys of requests that are made once."""

    gate: Gate | None
    once: Once

    def arrive(self, exchange: Exchange, operation: Operation[A, object]) -> Arrival | None:
        """The key under which a change comes, if it has one."""
        if operation.is_change and HEADER in exchange.headers.values:
            return arrive(exchange, exchange.principal)
        return None

    async def answer(
        self,
        exchange: Exchange,
        operation: Operation[A, object],
        call: A,
        names: Names,
        arrival: Arrival | None,
        run: Callable[[Standing | None], Awaitable[Reply]],
        fail: Callable[[PenstockError, Exchange], Reply],
        recover: Callable[[Used], Awaitable[Reply]],
    ) -> Reply:
        """Refuse a call without the right to it; run it, or give the answer that its key has."""
        standing = None
        if self.gate is not None and call.identity is not None:
            try:
                standing = await self.gate.admit(
                    call.identity, operation.needs, call, names, exchange
                )
            except NotFound:
                # What it is about may have gone with its first arrival.
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
    """Where the body of a request comes from; one under a key is digested on its way."""
    return exchange.receive if arrival is None else arrival.receive
