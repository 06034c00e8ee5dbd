"""Fresh databases for tests: SQLite files, and databases of one real PostgreSQL."""

import asyncio
import uuid
from pathlib import Path

import asyncpg
import pytest

KINDS = ("sqlite", "postgresql")
# For what takes long and hardly differs: the second one when there is time.
EITHER = ("sqlite", pytest.param("postgresql", marks=pytest.mark.slow))


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{folder / 'catalog.sqlite'}"


def new_postgres_database(server_url: str) -> str:
    """Create an empty database in the server and return its address."""
    name = f"t{uuid.uuid4().hex[:16]}"

    async def create() -> None:
        connection = await asyncpg.connect(server_url)
        try:
            await connection.execute(f"CREATE DATABASE {name}")
        finally:
            await connection.close()

    asyncio.run(create())
    head, _, tail = server_url.partition("?")
    return f"{head.rpartition('/')[0]}/{name}" + (f"?{tail}" if tail else "")


def database_of(request: pytest.FixtureRequest) -> str:
    """A new database of the kind that a fixture is made for; "" is SQLite in the data's folder."""
    if request.param == "sqlite":
        return ""
    return new_postgres_database(request.getfixturevalue("postgres"))
