"""PostgreSQL through asyncpg: a pool, and transactions that are repeated after a lost race."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import asyncpg

from penstock.database.interface import P, Row, T, Work
from penstock.database.location_sql import expand
from penstock.errors import DatabaseMismatch, Unavailable
from penstock.retries import spread

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

ATTEMPTS = 20
PAUSE_SECONDS = 0.002
# A constraint violation means that a race was lost after the checks: the next run sees the winner.
LOST_RACES = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.UniqueViolationError,
    asyncpg.ForeignKeyViolationError,
)
GONE = (
    OSError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.QueryCanceledError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InterfaceError,
)


class PostgresTransaction:
    """Statements on one connection."""

    def __init__(self, connection: "PoolConnectionProxy[Any]") -> None:
        self._connection = connection

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        return cast("list[Row]", await self._connection.fetch(expand(sql), *args))

    async def fetch_one(self, sql: str, *args: object) -> Row | None:
        return cast("Row | None", await self._connection.fetchrow(expand(sql), *args))


class PostgresDatabase:
    """One PostgreSQL database, shared by any number of server processes."""

    kind = "postgresql"

    def __init__(self, pool: "asyncpg.Pool[Any]") -> None:
        self._pool = pool
        self._writing = 0

    async def fetch(self, sql: str, *args: object) -> list[Row]:
        async with self._transaction() as tx:
            return await tx.fetch(sql, *args)

    async def fetch_one(self, sql: str, *args: object) -> Row | None:
        async with self._transaction() as tx:
            return await tx.fetch_one(sql, *args)

    async def read(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        async with self._transaction("repeatable_read", readonly=True) as tx:
            return await work(tx, *args, **kwargs)

    async def write(self, work: Work[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._writing += 1
        pauses = spread(PAUSE_SECONDS, ATTEMPTS - 1)
        try:
            while True:
                try:
                    async with self._transaction("read_committed") as tx:
                        return await work(tx, *args, **kwargs)
                except LOST_RACES as error:
                    pause = next(pauses, None)
                    if pause is None:
                        raise Unavailable(
                            "the catalog is too busy with the same objects", detail="retry"
                        ) from error
                    await asyncio.sleep(pause)
        finally:
            self._writing -= 1

    def pending_writes(self) -> int:
        return self._writing

    async def close(self) -> None:
        await self._pool.close()

    @asynccontextmanager
    async def _transaction(
        self, isolation: str = "", *, readonly: bool = False
    ) -> AsyncIterator[PostgresTransaction]:
        try:
            async with self._pool.acquire() as connection:
                if not isolation:
                    yield PostgresTransaction(connection)
                    return
                async with connection.transaction(isolation=isolation, readonly=readonly):
                    yield PostgresTransaction(connection)
        except (asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError) as error:
            raise DatabaseMismatch(
                f"the database holds something else already: {error}",
                detail="give Penstock a database or a schema of its own",
            ) from error
        except GONE as error:
            if isinstance(error, ValueError):
                raise  # our bug (a parameter of the wrong type), not an outage
            raise _unreachable(error) from error


async def connect_postgres(url: str, pool_size: int) -> PostgresDatabase:
    """Open the pool; also creates the domain and the clock function that our SQL uses."""
    try:
        pool = await asyncpg.create_pool(
            url,
            min_size=1,
            max_size=pool_size,
            timeout=10,
            command_timeout=60,
            reset=_leave,
            # Shows operators and `penstock relocate` who is connected.
            server_settings={"application_name": "penstock"},
        )
    except (
        *GONE,
        asyncpg.InvalidAuthorizationSpecificationError,
        asyncpg.InvalidCatalogNameError,
    ) as error:
        raise _unreachable(error) from error
    except ValueError as error:
        # The driver's message may contain part of the password.
        raise Unavailable(
            "database.url is not a PostgreSQL address",
            detail="write it as postgresql://user:password@host:5432/name, with special characters "
            "of the password percent-encoded",
        ) from error
    return PostgresDatabase(pool)


async def _leave(_: object) -> None:
    """Return a connection without a reset: its transaction has ended, and nothing else is kept.

    Resetting the session would cost a second round trip for every statement.
    """


def _unreachable(error: BaseException) -> Unavailable:
    return Unavailable(
        f"PostgreSQL does not answer: {error}", detail="check database.url and that it is running"
    )
