"""Functions on Spark: workers that die, tasks that are tried again, threads and prints."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import structs

from penstock.jobs.backfill.kernel import fill_kernel
from penstock.jobs.engine.guard import SCHEMA
from penstock.jobs.spark.tasks import Engine, Tasks
from tests.harness.jobs.kernel import Bench, bench

DATA = pa.table({"id": pa.array(range(200), pa.int64())})


def run(engine: Engine, table: Bench, **more: Any) -> list[Any]:
    """Fill all fragments in two tasks, and commit what was finished."""
    work = table.work()
    order = structs.replace(table.order(work, **more), tasks=(work[::2], work[1::2]))
    failed = Tasks(engine, fill_kernel(order), 2, SCHEMA).result()
    table.commit()
    return failed


def logging_to(log: Path) -> Any:
    def note(n: int) -> None:
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{n}\n".encode())
        os.close(handle)

    return note


def test_a_function_runs_once_for_each_row(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = logging_to(log)

    def triple(n: int) -> int:
        note(n)
        print("given", n)
        return n * 3

    table = bench(tmp_path, DATA, triple, ["id"], {"value": pa.int64()}, fragments=4)
    assert run(engine, table, threads=2, batch_rows=8) == []
    assert table.values() == [n * 3 for n in range(200)]
    assert sorted(map(int, log.read_text().split())) == list(range(200))
    assert "given 17" in table.printed()


def test_a_failure_comes_back_without_another_try(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "log"
    note = logging_to(log)

    def broken(n: int) -> int:
        if n == 150:
            note(n)
            raise LookupError("nothing there")
        return n

    table = bench(tmp_path, DATA, broken, ["id"], {"value": pa.int64()}, name="broken")
    (failed,) = run(engine, table)
    assert failed.is_function
    assert (
        "function broken (version 1) failed at row id 150 (fragment 1, offset 50)" in failed.error
    )
    assert "in broken" in failed.detail
    assert log.read_text() == "150\n"


def test_a_row_that_kills_its_worker_is_found_by_the_next_try(
    engine: Engine, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    note = logging_to(log)

    def deadly(n: int) -> int:
        note(n)
        if n == 130:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    table = bench(
        tmp_path,
        DATA,
        deadly,
        ["id"],
        {"value": pa.int64()},
        on_error={"action": "skip"},
    )
    assert run(engine, table, batch_rows=10, max_rows=10, flush_seconds=0) == []
    assert table.values() == [None if n == 130 else n for n in range(200)]
    (error,) = table.errors()
    assert (error.row_id, error.exception) == (130, "WorkerDied")
    calls = Counter(map(int, log.read_text().split()))
    # Parts hold what came before; only the batch of the deadly row is given again.
    assert {n for n, count in calls.items() if count > 1} <= set(range(130, 140))


def test_a_worker_serves_one_task_after_the_other(engine: Engine) -> None:
    def tell_process(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            yield pa.record_batch([[os.getpid()] * batch.num_rows], ["process"])

    runs = [Tasks(engine, tell_process, 1, "process bigint").result() for _ in range(6)]
    assert len({row.process for (row,) in runs}) <= engine.slots
