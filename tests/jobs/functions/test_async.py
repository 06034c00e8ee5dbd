"""Async functions: several calls at once, in one loop, with the promises that others have."""

import asyncio
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.jobs.engine.checkpoints import request_stop
from penstock.jobs.functions.calls import DirectCaller
from penstock.jobs.functions.errors import Policy, RowFailed
from penstock.jobs.functions.event_loop import CallLoop
from penstock.jobs.functions.load import LoadedFunction
from penstock.lance.storage.lake import Lake
from tests.harness.data.calls import recorded, take_calls
from tests.harness.jobs.kernel import Bench, bench, declare

INT = {"value": pa.int64()}
KINDS = pa.schema([("value", pa.int64())])


def rows(count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(count), pa.int64())})


class RateLimitError(Exception):
    retry_after = 0.01


def test_calls_overlap_up_to_the_bound_and_values_keep_their_order(tmp_path: Path) -> None:
    log = tmp_path / "most"

    class Ask:
        def __init__(self) -> None:
            # As clients of services are made, which want a loop.
            self.loop = asyncio.get_running_loop()
            self.now = self.most = 0

        async def __call__(self, id: int) -> int:
            assert asyncio.get_running_loop() is self.loop
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.02 * (1 + (id * 7) % 3))
            self.now -= 1
            recorded(log, self.most)
            return 2 * id

    table = bench(tmp_path, rows(60), Ask, ["id"], INT, concurrency=6)
    started = time.monotonic()
    assert table.run() is None
    assert time.monotonic() - started < 60 * 0.04 * 0.6
    assert table.values() == [2 * n for n in range(60)]
    assert max(map(int, take_calls(log))) == 6
    assert [(note.computed, note.calls) for note in table.notes()] == [(30, 30)] * 2


@pytest.mark.parametrize("isolated", [False, True])
def test_rows_that_fail_are_told_one_by_one(tmp_path: Path, isolated: bool) -> None:
    async def check(id: int) -> int:
        await asyncio.sleep(0.001 * (id % 5))
        print(f"row {id}")
        if id % 10 == 3:
            raise ValueError(f"no {id}")
        return id

    skip = {"action": "skip"}
    table = bench(tmp_path, rows(40), check, ["id"], INT, on_error=skip, fragments=1)
    assert table.run(is_second=isolated) is None
    assert table.values() == [None if n % 10 == 3 else n for n in range(40)]
    errors = sorted(table.errors(), key=lambda error: error.offset)
    assert [(e.offset, e.message) for e in errors] == [(n, f"no {n}") for n in (3, 13, 23, 33)]
    assert 'raise ValueError(f"no {id}")' in errors[0].traceback
    assert "event_loop" not in errors[0].traceback
    assert sorted(table.printed()) == sorted(f"row {n}" for n in range(40))


def test_the_first_failure_ends_the_job_and_keeps_what_others_have(tmp_path: Path) -> None:
    log, broken = tmp_path / "calls", tmp_path / "broken"
    broken.touch()

    async def ask(id: int) -> int:
        recorded(log, id)
        if id == 5 and broken.exists():
            await asyncio.sleep(0.2)
            raise ValueError("no 5")
        await asyncio.sleep(30 if id >= 12 and broken.exists() else 0.001)
        return id

    table = bench(tmp_path, rows(16), ask, ["id"], INT, fragments=1, concurrency=16)
    failed = table.run()
    assert failed is not None
    assert "offset 5): ValueError: no 5" in failed.error
    assert len(take_calls(log)) == 16
    broken.unlink()
    table.attempt = 2
    assert table.run() is None
    assert sorted(map(int, take_calls(log))) == [5, 12, 13, 14, 15]
    assert table.values() == list(range(16))


def make_policy(call: Any, concurrency: int = 4, **on_error: Any) -> Policy:
    function = declare(b"", ["id"], on_error=on_error, concurrency=concurrency)
    loaded = LoadedFunction(call, "scalar", CallLoop())
    return Policy(function, DirectCaller(loaded, function, KINDS), KINDS, sleep=lambda _: None)


def batch(count: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(range(count), pa.int64())})


def test_only_refused_rows_are_asked_again() -> None:
    calls: Counter[int] = Counter()

    async def ask(id: int) -> int:
        calls[id] += 1
        await asyncio.sleep(0.001)
        if id in (2, 9) and calls[id] < 3:
            raise RateLimitError
        return id

    done = make_policy(ask).compute(batch(12))
    assert done.values.column(0).to_pylist() == list(range(12))
    assert {n: calls[n] for n in range(12)} == {n: 3 if n in (2, 9) else 1 for n in range(12)}
    assert done.calls == 16


def test_failed_rows_are_tried_again_alone() -> None:
    calls: Counter[int] = Counter()

    async def ask(id: int) -> int:
        calls[id] += 1
        if id == 4 or (id == 7 and calls[id] == 1):
            raise OSError(f"no {id}")
        return id

    retry: dict[str, Any] = {"action": "retry", "max_attempts": 3, "max_failed_rows": 5}
    done = make_policy(ask, **retry).compute(batch(10))
    assert done.values.column(0).to_pylist() == [n if n != 4 else None for n in range(10)]
    assert {row: tries for row, (_, tries) in done.failures.items()} == {4: 3}
    assert calls == {**dict.fromkeys(range(10), 1), 4: 3, 7: 2}
    with pytest.raises(RowFailed) as failed:
        make_policy(ask, action="retry", max_attempts=2).compute(batch(10))
    assert (failed.value.row, failed.value.tries) == (4, 2)


def test_exits_and_cancels_of_the_function_are_failures_of_rows() -> None:
    async def ask(id: int) -> int:
        if id == 1:
            raise SystemExit(3)
        if id == 2:
            raise asyncio.CancelledError
        return id

    done = make_policy(ask, action="skip").compute(batch(4))
    assert done.values.column(0).to_pylist() == [0, None, None, 3]
    assert {n: f.exception for n, (f, _) in done.failures.items()} == {
        1: "SystemExit",
        2: "CancelledError",
    }


def test_each_call_has_its_own_time(tmp_path: Path) -> None:
    async def ask(id: int) -> int:
        await asyncio.sleep(60 if id in (3, 5) else 0)
        return id

    skip = {"action": "skip"}
    table = bench(
        *(tmp_path, rows(8), ask, ["id"], INT), on_error=skip, timeout_seconds=0.5, fragments=1
    )
    assert table.run() is None
    assert table.values() == [0, 1, 2, None, 4, None, 6, 7]
    told = [(e.offset, e.exception, e.message) for e in table.errors()]
    assert told == [(n, "TimeoutError", "took longer than 0.5 s") for n in (3, 5)]


@pytest.mark.slow
def test_a_call_that_blocks_the_loop_is_ended_too(tmp_path: Path) -> None:
    async def ask(id: int) -> int:
        if id == 5:
            time.sleep(60)  # noqa: ASYNC251
        return id

    skip = {"action": "skip"}
    table = bench(
        *(tmp_path, rows(8), ask, ["id"], INT), on_error=skip, timeout_seconds=0.5, fragments=1
    )
    assert table.run() is None
    assert table.values() == [0, 1, 2, 3, 4, None, 6, 7]
    assert [error.exception for error in table.errors()] == ["TimeoutError"]


def test_a_row_that_kills_the_process_is_found(tmp_path: Path) -> None:
    async def ask(id: int) -> int:
        if id == 6:
            os._exit(7)
        await asyncio.sleep(0.001)
        return id

    table = bench(tmp_path, rows(10), ask, ["id"], INT, on_error={"action": "skip"}, fragments=1)
    assert table.run(is_second=True) is None
    assert table.values() == [n if n != 6 else None for n in range(10)]
    assert [error.exception for error in table.errors()] == ["WorkerDied"]


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_a_stopped_job_keeps_the_calls_that_ended(tmp_path: Path, timeout: float | None) -> None:
    log, slow = tmp_path / "calls", tmp_path / "slow"
    slow.touch()

    async def ask(id: int) -> int:
        recorded(log, id)
        await asyncio.sleep(30 if id % 4 == 0 and slow.exists() else 0.001)
        return id

    table = bench(
        *(tmp_path, rows(16), ask, ["id"], INT),
        fragments=1,
        concurrency=16,
        timeout_seconds=timeout,
    )
    threading.Thread(target=stop_soon, args=(table, log), daemon=True).start()
    started = time.monotonic()
    assert table.run() is None
    assert time.monotonic() - started < 20
    assert (len(take_calls(log)), table.notes()) == (16, [])
    slow.unlink()
    table.attempt = 2
    assert table.run() is None
    assert sorted(map(int, take_calls(log))) == [0, 4, 8, 12]
    assert table.values() == list(range(16))


def stop_soon(table: Bench, log: Path) -> None:
    while not log.exists() or log.read_text().count("\n") < 16:
        time.sleep(0.02)
    time.sleep(0.3)
    request_stop(Lake(str(table.root)).place(str(table.root)), table.job, 1)


def test_whole_batches_may_be_awaited(tmp_path: Path) -> None:
    async def double(ids: pa.Array) -> pa.Array:
        await asyncio.sleep(0.01)
        return pa.array([2 * n for n in ids.to_pylist()], pa.int64())

    table = bench(tmp_path, rows(50), double, ["id"], INT, kind="arrow", concurrency=3)
    assert table.run(batch_rows=5, max_rows=5) is None
    assert table.values() == [2 * n for n in range(50)]
