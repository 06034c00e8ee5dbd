"""Open the database that a URL names."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from penstock.database import schema
from penstock.database.interface import Database
from penstock.errors import DatabaseMismatch, InvalidRequest


async def connect(
    url: str, pool_size: int = 8, *, to_write: bool = True, beside: bool = False
) -> Database:
    """Open `sqlite:///path` or `postgresql://…` without checking its schema.

    A SQLite file that is not opened `to_write`, or is opened `beside`, may belong to a running
    server.
    """
    if url.startswith("sqlite:///"):
        from penstock.database.sqlite import SqliteDatabase

        return SqliteDatabase(
            Path(url.removeprefix("sqlite:///")), to_write=to_write, beside=beside
        )
    if url.startswith(("postgresql://", "postgres://")):
        # Imported here: each driver is loaded only where it is used.
        from penstock.database.postgres import connect_postgres

        return await connect_postgres(url, pool_size)
    raise InvalidRequest(
        f"database.url {url!r} is neither SQLite nor PostgreSQL",
        detail="write sqlite:///path/to/file or postgresql://user:password@host/name",
    )


async def open_catalog(
    url: str,
    pool_size: int = 8,
    before_setup: Callable[[Database], Awaitable[None]] | None = None,
) -> Database:
    """Open a database for serving: sets up a fresh one, upgrades an old SQLite file.

    `before_setup` may refuse to set up a fresh one.
    """
    database = await connect(url, pool_size)
    try:
        status = await schema.get_status(database)
        if status.is_fresh and before_setup is not None:
            await before_setup(database)
        if status.is_fresh or (database.kind == "sqlite" and not status.is_current):
            await schema.upgrade(database)
        elif not status.is_current:
            raise DatabaseMismatch(
                f"the database is {len(status.pending)} migrations behind this release",
                detail="stop the servers that use it and run 'penstock db upgrade'",
            )
    except BaseException:
        await database.close()
        raise
    return database


async def open_beside(url: str) -> Database:
    """Open a catalog that a server may be using, for a few small writes; sets up a fresh one."""
    if _is_missing(url):
        return await open_catalog(url)
    database = await connect(url, 1, beside=True)
    try:
        status = await schema.get_status(database)
        if status.is_fresh and database.kind == "postgresql":
            await schema.upgrade(database)
        elif not status.is_current:
            raise DatabaseMismatch(
                f"the database is {len(status.pending)} migrations behind this release",
                detail="stop its servers and run 'penstock db upgrade'",
            )
    except BaseException:
        await database.close()
        raise
    return database


def _is_missing(url: str) -> bool:
    return url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists()
