"""`penstock.aio`: the SDK to be awaited, on a real server; nothing of it blocks the loop."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest

import penstock
from penstock.aio.switching import run, wait_for
from penstock.errors import InvalidRequest, TableAlreadyExists, TableNotFound, Unavailable
from tests.harness.jobs.fake_runner import Runner
from tests.harness.processes.servers import Server, free_port
from tests.harness.root import ROOT

pytestmark = pytest.mark.anyio


@pytest.fixture
async def awaited(server: Server) -> AsyncIterator[penstock.aio.AsyncLake]:
    async with await penstock.aio.connect(server.url) as lake:
        yield lake


async def test_a_table_is_made_changed_and_read(
    awaited: penstock.aio.AsyncLake, space: str
) -> None:
    table = await awaited.create_table(f"{space}.docs", {"id": [1, 2], "text": ["a", "bb"]})
    assert isinstance(table, penstock.aio.AsyncTable)
    assert repr(table) == f"<AsyncTable {space}.docs>"
    assert (await table.append([{"id": 3, "text": "ccc"}])).rows_inserted == 1
    assert await table.select("id").where("length(text) > 1").to_list() == [{"id": 2}, {"id": 3}]
    old = await table.at(1)
    assert (await old.count(), await table.count()) == (2, 3)
    with pytest.raises(TableAlreadyExists):
        await awaited.create_table(f"{space}.docs", {"id": [1]})
    with pytest.raises(TableNotFound):
        await awaited.table(f"{space}.none")


async def test_what_the_sdk_takes_of_its_own_may_be_awaited_ones(
    awaited: penstock.aio.AsyncLake, space: str
) -> None:
    table = await awaited.create_table(f"{space}.docs", {"id": [1, 2], "text": ["a", "bb"]})
    view = await awaited.create_view(f"{space}.long", table.select("id").where("id > 1"))
    assert isinstance(view, penstock.aio.AsyncView)
    assert await view.kind() == "query"
    assert isinstance(await awaited.view(f"{space}.long"), penstock.aio.AsyncView)


async def test_a_body_is_made_while_others_go_on(
    awaited: penstock.aio.AsyncLake, space: str
) -> None:
    made = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal made
        for each in range(20):
            made += 1
            # A thread sleeps here, as it would read a file; the loop must not wait for it.
            time.sleep(0.02)
            yield pa.record_batch({"id": [each]})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"id": pa.int64()}), batches())
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        table = await awaited.create_table(f"{space}.docs", reader)
        group.cancel_scope.cancel()
    assert made == 20
    assert ticks >= 5
    assert await table.count() == 20


async def test_rows_arrive_in_batches_while_others_go_on(
    awaited: penstock.aio.AsyncLake, space: str
) -> None:
    rows = pa.table({"id": range(300_000), "text": ["x" * 20] * 300_000})
    table = await awaited.create_table(f"{space}.docs", rows)
    counts = []
    async for batch in table.to_batches(10_000):
        counts.append(batch.num_rows)
        assert await table.count() == 300_000
        if len(counts) == 5:
            break
    assert max(counts) <= 10_000
    assert sum([each.num_rows async for each in table.to_batches()]) == 300_000


async def test_many_jobs_are_waited_for_at_a_time_and_one_is_left(
    awaited: penstock.aio.AsyncLake, server: Server, table: penstock.Table, cluster: str
) -> None:
    table.add_column("size", computed="length(text)")
    mine = await awaited.table(table.name)
    job = await mine.backfill("size", wait=False, cluster=cluster)
    waits = [asyncio.create_task(job.wait()) for _ in range(200)]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await job.wait()
    runner = Runner(server, cluster)
    (leased,) = await anyio.to_thread.run_sync(runner.lease)
    await anyio.to_thread.run_sync(lambda: runner.finish(leased, result={"version": 5}))
    done = await asyncio.gather(*waits)
    assert {each.id for each in done} == {job.id}


async def test_an_object_keeps_no_loop_waiting_that_it_is_not_used_in(
    awaited: penstock.aio.AsyncLake,
) -> None:
    with pytest.raises(RuntimeError, match=r"outside of an await"):
        awaited._wrapped.tables()


async def test_what_goes_wrong_comes_as_from_the_sdk(server: Server) -> None:
    with pytest.raises(Unavailable, match="no answer from"):
        await penstock.aio.connect(f"http://127.0.0.1:{free_port()}", retry_seconds=0)
    with pytest.raises(InvalidRequest, match="the address is"):
        await penstock.aio.connect("localhost")


async def test_what_is_canceled_is_raised_where_it_waits() -> None:
    left: list[str] = []

    def waits() -> None:
        try:
            wait_for(anyio.sleep(60))
        finally:
            left.append("left")

    task = asyncio.create_task(run(waits))
    await anyio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left == ["left"]


def test_it_works_on_trio(server: Server) -> None:
    async def count() -> int:
        async with await penstock.aio.connect(server.url) as lake:
            return len(await lake.namespaces())

    assert anyio.run(count, backend="trio") >= 0


def test_the_awaited_sdk_is_as_its_script_writes_it() -> None:
    command = [sys.executable, "scripts/async_sdk.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
