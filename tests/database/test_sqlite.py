"""What the SQLite database promises beyond plain SQL."""

import asyncio
from pathlib import Path

import apsw
import pytest

from penstock.database.interface import Transaction
from penstock.database.sqlite import SqliteDatabase
from penstock.errors import Unavailable
from tests.harness.processes import servers

pytestmark = pytest.mark.anyio


async def create_items(tx: Transaction) -> None:
    await tx.fetch("CREATE TABLE items (n BIGINT PRIMARY KEY)")


async def add(tx: Transaction, n: int) -> int:
    await tx.fetch("INSERT INTO items (n) VALUES ($1)", n)
    return n


async def add_then_fail(tx: Transaction, n: int) -> None:
    await add(tx, n)
    raise ValueError(n)


async def count(database: SqliteDatabase) -> int:
    row = await database.fetch_one("SELECT count(*) FROM items")
    assert row is not None
    return int(row[0])


@pytest.fixture
async def database(tmp_path: Path) -> SqliteDatabase:
    opened = SqliteDatabase(tmp_path / "catalog.sqlite")
    await opened.write(create_items)
    return opened


async def test_writes_that_arrive_together_all_take_effect(database: SqliteDatabase) -> None:
    results = await asyncio.gather(*(database.write(add, n) for n in range(500)))
    assert results == list(range(500))
    assert await count(database) == 500


async def test_a_statement_is_planned_once_whatever_values_it_is_given(
    database: SqliteDatabase,
) -> None:
    async def create(tx: Transaction) -> None:
        await tx.fetch("CREATE TABLE pairs (a TEXT, b TEXT, PRIMARY KEY (a, b))")

    async def find(value: str) -> None:
        await database.fetch("SELECT b FROM pairs WHERE a = $1 ORDER BY b DESC LIMIT 1", value)

    await database.write(create)
    planned = []

    def note(*step: object) -> int:
        planned.append(step)
        return apsw.SQLITE_OK

    # SQLite asks it for each part of a statement that it makes a plan for.
    database._reader.authorizer = note
    await find("x")
    assert planned
    planned.clear()
    await find("y")
    assert not planned


async def test_a_write_that_fails_leaves_its_batch_whole(database: SqliteDatabase) -> None:
    writes = [database.write(add_then_fail if n % 3 == 0 else add, n) for n in range(30)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [n for n, r in enumerate(results) if isinstance(r, ValueError)] == list(range(0, 30, 3))
    assert await count(database) == 20


async def test_an_acknowledged_write_is_in_the_file_before_the_answer(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    await database.write(add, 1)
    other = SqliteDatabase(tmp_path / "catalog.sqlite", to_write=False)
    assert await count(other) == 1
    await other.close()


async def test_a_caller_that_goes_away_does_not_undo_its_write(database: SqliteDatabase) -> None:
    task = asyncio.create_task(database.write(add, 1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await database.write(add, 2)
    assert await count(database) == 2


async def test_a_transaction_that_waits_for_anything_else_is_an_error(
    database: SqliteDatabase,
) -> None:
    async def wait(tx: Transaction) -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waited for something other"):
        await database.write(wait)


async def test_a_second_owner_of_the_file_is_refused(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    with pytest.raises(Unavailable, match="another Penstock process") as refused:
        SqliteDatabase(tmp_path / "catalog.sqlite")
    assert "PostgreSQL" in refused.value.detail


async def test_the_file_can_be_owned_again_after_a_close(tmp_path: Path) -> None:
    await SqliteDatabase(tmp_path / "catalog.sqlite").close()
    await SqliteDatabase(tmp_path / "catalog.sqlite").close()


def test_a_second_server_on_the_same_data_is_refused_with_one_line(tmp_path: Path) -> None:
    with (
        servers.running(tmp_path) as first,
        pytest.raises(AssertionError, match="another Penstock process") as refused,
    ):
        servers.start(tmp_path)
    assert str(first.process.pid) in str(refused.value)
    assert "Traceback" not in str(refused.value)
