"""Functions that kill their process, hang, or take too much memory."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.functions.errors import BatchValues, Policy
from penstock.jobs.functions.isolation.isolate import IsolatedCaller
from penstock.jobs.functions.output import PrintedOutput
from penstock.model.functions import Needs
from tests.harness.jobs.kernel import declare, seal
from tests.harness.processes.waiting import until
from tests.harness.root import ROOT

KINDS = pa.schema([("value", pa.int64())])


@contextmanager
def isolated(
    call: Any, kind: Any = "scalar", **more: Any
) -> Iterator[tuple[Policy, PrintedOutput]]:
    content = seal(call, kind)
    more.setdefault("on_error", {"action": "skip"})
    function = declare(content, ["id"], kind=kind, **more)
    output = PrintedOutput()
    caller = IsolatedCaller(content, function, KINDS, output)
    try:
        yield Policy(function, caller, KINDS), output
    finally:
        caller.close()


def compute(policy: Policy, count: int = 20) -> BatchValues:
    return policy.compute(pa.record_batch({"id": pa.array(range(count), pa.int64())}))


def values_but(*rows: int) -> list[int | None]:
    return [None if n in rows else n for n in range(20)]


def test_values_errors_and_prints_come_back() -> None:
    def call(n: int) -> int:
        print("row", n)
        if n == 3:
            raise KeyError("three")
        return n

    with isolated(call) as (policy, output):
        done = compute(policy)
        assert done.values.column(0).to_pylist() == values_but(3)
        failure, _ = done.failures[3]
        assert (failure.exception, failure.message) == ("KeyError", "'three'")
        assert "in call" in failure.traceback
        assert "penstock/jobs" not in failure.traceback
        assert len(output.take()) == 20


@pytest.mark.parametrize("kind", ["scalar", pytest.param("arrow", marks=pytest.mark.slow)])
def test_a_row_that_kills_its_process_is_found(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def one(n: int) -> int:
        if n == 7:
            with open(log, "a") as file:
                file.write("7\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if n == 9:
            os._exit(3)
        return n

    def all_of_them(ids: pa.Array) -> pa.Array:
        return pa.array([one(n) for n in ids.to_pylist()])

    with isolated(one if kind == "scalar" else all_of_them, kind) as (policy, _):
        done = compute(policy)
    assert done.values.column(0).to_pylist() == values_but(7, 9)
    assert done.failures[7][0].exception == "WorkerDied"
    assert "SIGKILL" in done.failures[7][0].message
    assert "status 3" in done.failures[9][0].message
    if kind == "scalar":
        # Once among others, and once alone.
        assert len(log.read_text().split()) <= 3


@pytest.mark.parametrize("row", [3, 10])
def test_what_a_dead_process_started_ends_with_it(tmp_path: Path, row: int) -> None:
    log = tmp_path / "log"

    def forks(n: int) -> int:
        if n == row:
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            with open(log, "a") as file:
                file.write(f"{child}\n")
            if n == 3:
                os.kill(os.getpid(), signal.SIGKILL)
        return n

    started = time.monotonic()
    with isolated(forks) as (policy, _):
        done = compute(policy)
    assert done.values.column(0).to_pylist() == values_but(*({3} & {row}))
    assert time.monotonic() - started < 20
    for child in log.read_text().split():
        wait_for_end(Path(f"/proc/{child}/stat"))


def wait_for_end(stat: Path) -> None:
    def has_ended() -> bool:
        try:
            # One that nobody waits for stays as a zombie.
            return stat.read_text().rpartition(")")[2].split()[0] == "Z"
        except (FileNotFoundError, ProcessLookupError):
            return True

    # Not as long as it would run by itself.
    until(has_ended, seconds=30)


def test_a_row_may_take_so_long(tmp_path: Path) -> None:
    def sleepy(n: int) -> int:
        if n == 5:
            time.sleep(60)
        return n

    with isolated(sleepy, timeout_seconds=1) as (policy, _):
        done = compute(policy)
    assert done.values.column(0).to_pylist() == values_but(5)
    assert done.failures[5][0].text == "TimeoutError: took longer than 1 s"


@pytest.mark.slow
def test_a_row_that_cannot_be_interrupted_is_killed() -> None:
    def stubborn(n: int) -> int:
        if n == 5:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
            time.sleep(60)
        return n

    with isolated(stubborn, timeout_seconds=1) as (policy, _):
        done = compute(policy)
    assert done.values.column(0).to_pylist() == values_but(5)
    assert "was killed" in done.failures[5][0].message


def test_a_row_that_takes_too_much_memory_fails_alone() -> None:
    def hungry(n: int) -> int:
        return len(bytes(2**30)) if n == 5 else n

    with isolated(hungry, needs=Needs(memory=300 * 2**20)) as (policy, _):
        done = compute(policy)
    assert done.values.column(0).to_pylist() == values_but(5)
    assert done.failures[5][0].exception == "MemoryError"


def test_what_cannot_be_loaded_is_told() -> None:
    class Broken:
        def __init__(self) -> None:
            raise RuntimeError("no model here")

    class Deadly:
        def __init__(self) -> None:
            os._exit(9)

    with isolated(Broken) as (policy, _), pytest.raises(FunctionFailed, match="no model here"):
        compute(policy)
    with isolated(Deadly) as (policy, _), pytest.raises(FunctionFailed, match="status 9"):
        compute(policy)


def test_the_process_ends_with_its_parent(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = f"""
import os, sys, pyarrow as pa
sys.path.insert(0, {str(ROOT)!r})
from tests.harness.jobs.kernel import declare, seal
from penstock.jobs.functions.isolation.isolate import IsolatedCaller
def call(n):
    import os, time
    open({str(tmp_path / "pid")!r}, "w").write(str(os.getpid()))
    time.sleep(60)
content = seal(call)
caller = IsolatedCaller(content, declare(content, ["id"]), pa.schema([("value", pa.int64())]))
caller.run(pa.record_batch({{"id": pa.array([1])}}), go_on=True)
"""
    parent = subprocess.Popen([sys.executable, "-c", script])
    try:
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
    finally:
        parent.kill()
        parent.wait()
    wait_for_end(Path(f"/proc/{(tmp_path / 'pid').read_text()}/stat"))
