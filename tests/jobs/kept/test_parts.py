"""Parts of fragments: after a kill, what was computed before the last one is not computed again."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.backfill.kernel import fill_fragments
from penstock.jobs.kept.store import Store, make_table, write_part
from penstock.lance.diff.digests import digest_rows
from penstock.lance.session.remote import Location
from tests.harness.jobs.kernel import Bench, bench
from tests.harness.processes.python_code import start_code
from tests.harness.root import ROOT

DATA = pa.table({"id": pa.array(range(300), pa.int64())})
TASK = """
import pickle, sys
from penstock.jobs.backfill.kernel import fill_fragments
order = pickle.load(open(sys.argv[1], "rb"))
fill_fragments(order, order.tasks[0])
"""


def logged(log: Path, **more: Any) -> Any:
    """A function that leaves a line for each row, and takes its time."""
    seconds, skip = more.get("seconds", 0.0), more.get("skip", 0)

    def call(n: int) -> int:
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{n}\n".encode())
        os.close(handle)
        time.sleep(seconds)
        if skip and n % skip == 0:
            raise ValueError("skipped")
        return n * 3

    return call


def calls(log: Path) -> Counter[int]:
    return Counter(int(line) for line in log.read_text().split())


def start(table: Bench, folder: Path, crash: str = "", **more: Any) -> "subprocess.Popen[bytes]":
    """The task in a process that can be killed."""
    path = folder / "order"
    path.write_bytes(pickle.dumps(table.order(table.work(), **more)))
    return start_code(TASK, str(path), environ={"PENSTOCK_CRASH_AT": crash})


def leave(table: Bench, rows: list[int], values: list[int]) -> None:
    """A part with values of some rows, whose ids are their numbers."""
    made = pa.record_batch({"value": pa.array(values, pa.int64())})
    inputs = digest_rows([pa.array(rows, pa.int64())], len(rows))
    part = make_table(np.array(rows), inputs, np.zeros(len(rows), bool), [made])
    place = Location(str(table.root), "", {}).place()
    write_part(Store(place, table.job, table.job), part)


@pytest.mark.parametrize("skip", [0, 7])
def test_a_try_after_a_kill_goes_on_behind_the_last_part(tmp_path: Path, skip: int) -> None:
    log = tmp_path / "log"
    table = bench(
        tmp_path,
        DATA,
        logged(log, skip=skip),
        ["id"],
        {"value": pa.int64()},
        fragments=1,
        on_error={"action": "skip"} if skip else None,
    )
    dying = start(table, tmp_path, "part written", batch_rows=10, max_rows=10, flush_seconds=0)
    assert dying.wait(60) == -signal.SIGKILL
    assert len(calls(log)) == 10
    table.open().delete("id = 4")
    assert table.run(batch_rows=10, max_rows=10, flush_seconds=60) is None
    assert set(calls(log).values()) == {1}
    kept = [n for n in range(300) if n != 4]
    assert table.values() == [None if skip and n % skip == 0 else n * 3 for n in kept]
    note = table.notes()[0]
    assert (note.computed, note.calls) == (299, 290)
    assert note.failed == (len([n for n in kept if n % skip == 0]) if skip else 0)
    assert len(table.errors()) == (43 if skip else 0)


def test_a_second_try_leaves_the_fragments_alone_that_the_first_finished(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = bench(tmp_path, DATA, logged(log), ["id"], {"value": pa.int64()}, fragments=3)
    work = table.work()
    fill_fragments(table.order(work), work[:2])
    assert table.run(is_second=True) is None
    assert set(calls(log).values()) == {1}
    assert table.values() == [n * 3 for n in range(300)]


@pytest.mark.slow
def test_kills_at_any_time_repeat_little(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = bench(
        tmp_path, DATA, logged(log, seconds=0.005), ["id"], {"value": pa.int64()}, fragments=1
    )
    kills = 0
    for pause in (0.1, 0.3, 0.5):
        before = log.stat().st_size if log.exists() else 0
        running = start(table, tmp_path, batch_rows=5, max_rows=5, flush_seconds=0.05)
        while not log.exists() or log.stat().st_size == before:
            if running.poll() is not None:
                break
            time.sleep(0.01)
        time.sleep(pause)
        kills += running.poll() is None
        running.kill()
        running.wait()
    assert table.run(batch_rows=5, max_rows=5) is None
    assert table.values() == [n * 3 for n in range(300)]
    # At each kill, the batch that ran, and those since the last part.
    assert sum(count - 1 for count in calls(log).values()) <= kills * 25


def test_parts_serve_another_need(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = bench(tmp_path, DATA, logged(log), ["id"], {"value": pa.int64()}, fragments=1)
    dying = start(table, tmp_path, "part written", batch_rows=50, max_rows=50, flush_seconds=0)
    dying.wait(60)
    need = lambda offsets: (offsets % 2 == 0) & (offsets > 20)  # noqa: E731
    assert table.run(need=need) is None
    assert table.values() == [n * 3 if n % 2 == 0 and n > 20 else None for n in range(300)]
    assert set(calls(log).values()) == {1}


def test_fast_functions_leave_no_parts(tmp_path: Path) -> None:
    table = bench(tmp_path, DATA, lambda n: n, ["id"], {"value": pa.int64()})
    assert table.run() is None
    assert table.parts() == []


def test_parts_with_holes_and_parts_that_overlap_are_used(tmp_path: Path) -> None:
    log = tmp_path / "log"
    table = bench(tmp_path, DATA, logged(log), ["id"], {"value": pa.int64()}, fragments=1)
    left = [[*range(40), *range(200, 240)], [*range(20, 120)], [*range(90, 250, 2)]]
    for rows in left:
        leave(table, rows, [n * 3 for n in rows])
    table.open().delete("id in (5, 30, 260)")
    assert table.run(batch_rows=16, max_rows=16) is None
    kept = {n for rows in left for n in rows}
    assert calls(log) == {n: 1 for n in range(300) if n not in kept and n != 260}
    assert table.values() == [n * 3 for n in range(300) if n not in (5, 30, 260)]


def test_rows_of_a_part_that_goes_before_it_is_read_are_computed(tmp_path: Path) -> None:
    log, count = tmp_path / "log", logged(tmp_path / "log")
    parts = tmp_path / "parts"

    def call(n: int) -> int:
        for part in parts.glob("*.arrow"):
            part.unlink()
        return int(count(n))

    table = bench(tmp_path, DATA, call, ["id"], {"value": pa.int64()}, fragments=1)
    parts.symlink_to(table.folder)
    leave(table, [*range(200, 300)], [*range(200, 300)])
    assert table.run(batch_rows=16, max_rows=16, flush_seconds=60) is None
    assert calls(log) == dict.fromkeys(range(300), 1)
    assert table.values() == [n * 3 for n in range(300)]


def test_a_limit_that_ends_the_task_leaves_all_errors_in_the_ledger(tmp_path: Path) -> None:
    def call(n: int) -> int:
        if n % 10 == 0:
            raise ValueError(f"no {n}")
        return n

    limits = {"action": "skip", "max_failed_rows": 12}
    table = bench(tmp_path, DATA, call, ["id"], {"value": pa.int64()}, fragments=1, on_error=limits)
    failed = table.run(batch_rows=25, max_rows=25)
    assert failed is not None
    assert "more than 12 rows failed" in failed.error
    assert sorted(error.offset for error in table.errors()) == list(range(0, 130, 10))


MEASURED = """
import sys
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024
import cloudpickle, lance, pyarrow
# A process begins with the peak of the one that started it.
open("/proc/self/clear_refs", "w").write("5")
before = peak()
{task}
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize("need", [None, lambda offsets: offsets % 2 == 0])
def test_memory_does_not_grow_with_the_fragment(tmp_path: Path, need: Any) -> None:
    """A fragment of 1.6 GB in rows of 100 KB, read and written."""
    blob = {"lance-encoding:blob": "true"}
    schema = pa.schema([pa.field("b", pa.large_binary(), metadata=blob)])
    contents = pa.array([os.urandom(100_000) for _ in range(16_000)], pa.large_binary())
    table = bench(
        tmp_path,
        pa.table([contents], schema=schema),
        lambda content: content[::-1],
        ["b"],
        {"value": pa.field("value", pa.large_binary(), metadata=blob)},
        fragments=1,
        storage="2.2",
    )
    assert measure(tmp_path, table, need) < 1300


@pytest.mark.slow
@pytest.mark.parametrize("need", [None, lambda offsets: offsets % 2 == 0])
def test_memory_does_not_grow_with_what_is_returned(tmp_path: Path, need: Any) -> None:
    """A gigabyte of values from next to nothing."""
    data = pa.table({"id": pa.array(range(20_000), pa.int64())})
    outputs = {"value": pa.large_binary()}
    table = bench(tmp_path, data, lambda n: bytes(50_000), ["id"], outputs, fragments=1)
    assert measure(tmp_path, table, need) < 700


@pytest.mark.slow
def test_memory_does_not_grow_with_rows_that_were_deleted(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array(range(2_000_000), pa.int64())})
    outputs = {"value": pa.list_(pa.float32(), 128)}
    table = bench(tmp_path, data, lambda n: [0.5] * 128, ["id"], outputs, fragments=1)
    table.open().delete("id % 1000 != 0")
    assert measure(tmp_path, table) < 600


def measure(folder: Path, table: Bench, need: Any = None) -> int:
    """The megabytes that a task takes at its peak."""
    path = folder / "order"
    path.write_bytes(pickle.dumps(table.order(table.work(need))))
    script = MEASURED.format(task=TASK)
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)
