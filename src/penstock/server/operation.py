"""What a row says of an operation in either protocol: its route, its effect, what it needs."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from penstock.catalog.names.idempotency import Used
from penstock.server.access.limits import UPLOADS
from penstock.server.access.rules import Rule
from penstock.server.transport.http import Reply

C = TypeVar("C")
# What the operations of a protocol return.
R_co = TypeVar("R_co", covariant=True)
Handler = Callable[[C], Awaitable[R_co]]
# Makes the answer to a call whose effect took place, and whose own answer was lost.
Recover = Callable[[C, Used], Awaitable[Reply]]


class Effect(Enum):
    """What an operation does; only a change may carry a key, and goes into the audit log."""

    READS = "reads"
    CHANGES = "changes"
    # A runner's report names the attempt that it is about, which does what a key would do.
    REPORTS = "reports"


READS, CHANGES, REPORTS = Effect.READS, Effect.CHANGES, Effect.REPORTS


@dataclass(frozen=True, slots=True)
class Operation(Generic[C, R_co]):
    """One operation; parts in braces of its path stand for a segment."""

    name: str
    method: str
    path: str
    handler: Handler[C, R_co]
    # These two have no default, so that none is forgotten.
    effect: Effect = field(kw_only=True)
    needs: Rule[C] = field(kw_only=True)
    # Another method that does as well.
    also: str = ""
    # The kind of work that takes a while, of which a principal may have so much at once.
    work: str = ""
    # Whether a runner's key is good for it at all.
    for_runners: bool = False
    # Whether clients may do it to the ledger of errors, whose rows and columns are the server's.
    is_for_ledger: bool = False
    # Whether it is among the endpoints that Iceberg's clients are told of.
    is_told: bool = True
    recover: Recover[C] | None = None

    @property
    def is_change(self) -> bool:
        return self.effect is CHANGES

    @property
    def streams(self) -> bool:
        """Whether the body is an Arrow stream, which the handler reads while it arrives."""
        return self.work == UPLOADS
