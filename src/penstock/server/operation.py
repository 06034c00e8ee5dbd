"""The definition of an operation in either protocol: its route, effect and rule."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from penstock.catalog.names.idempotency import KeyRecord
from penstock.server.access.limits import UPLOADS
from penstock.server.access.rules import Rule
from penstock.server.transport.http import Reply

C = TypeVar("C")
# What the operations of a protocol return.
R_co = TypeVar("R_co", covariant=True)
Handler = Callable[[C], Awaitable[R_co]]
# Rebuilds the answer to a call whose effect happened, but whose answer was lost.
Recover = Callable[[C, KeyRecord], Awaitable[Reply]]


class Effect(Enum):
    """What an operation does; only changes may carry a key, and are audited."""

    READS = "reads"
    CHANGES = "changes"
    # A runner's report names its attempt, which serves as its key.
    REPORTS = "reports"


READS, CHANGES, REPORTS = Effect.READS, Effect.CHANGES, Effect.REPORTS


@dataclass(frozen=True, slots=True)
class Operation(Generic[C, R_co]):
    """One operation; parts in braces of its path stand for a segment."""

    name: str
    method: str
    path: str
    handler: Handler[C, R_co]
    # Without defaults, so that none is forgotten.
    effect: Effect = field(kw_only=True)
    needs: Rule[C] = field(kw_only=True)
    # Another accepted method.
    also: str = ""
    # The kind of long-running work, of which a principal may have so much at once.
    work: str = ""
    # Whether runners' keys may be used for it at all.
    for_runners: bool = False
    # Whether clients may do it to the ledger of errors, which the server writes.
    is_for_ledger: bool = False
    # Whether it is among the endpoints that Iceberg's clients are told about.
    is_told: bool = True
    recover: Recover[C] | None = None

    @property
    def is_change(self) -> bool:
        return self.effect is CHANGES

    @property
    def streams(self) -> bool:
        """Whether the body is an Arrow stream, which the handler reads while it arrives."""
        return self.work == UPLOADS
