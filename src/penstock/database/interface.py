"""The interface of a database: reads, and writes that are durable once they return.

One SQL text serves SQLite and PostgreSQL: `$1` parameters, `KEYTEXT` for text that is compared byte
by byte, `now_millis()` for the database's clock, `relative` and `absolute` for locations
(`location_sql`), 0 and 1 for booleans.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

Row = Sequence[Any]


class Transaction(Protocol):
    """The statements of one transaction; await nothing else inside it."""

    async def fetch(self, sql: str, *args: object) -> list[Row]: ...

    async def fetch_one(self, sql: str, *args: object) -> Row | None: ...


Work = Callable[Concatenate[Transaction, P], Awaitable[T]]


class Database(Transaction, Protocol):
    """A catalog database; used as a transaction, each statement is a separate read."""

    kind: str

    async def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the work on one consistent snapshot."""
        ...

    async def write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the work in a transaction; once this returns, its effect survives a power cut.

        The work may run more than once (after a lost race), so it must have no other effects.
        """
        ...

    def pending_writes(self) -> int:
        """How many writes are waiting or running."""
        ...

    async def close(self) -> None: ...
