"""Rows that fail: what the job says, what is kept, and what is tried again."""

import asyncio
import base64
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.file import LanceFileReader

from penstock.jobs.engine.guard import Stopped
from penstock.jobs.functions.calls import DirectCaller
from penstock.jobs.functions.errors import Policy, RowFailed
from penstock.jobs.functions.load import LoadedFunction
from penstock.jobs.functions.output import PrintedOutput
from penstock.lance.diff.masks import unpack
from tests.harness.jobs.kernel import Bench, bench, declare

KINDS = pa.schema([("value", pa.int64())])
DATA = pa.table({"id": pa.array(range(100), pa.int64())})


class RateLimitError(Exception):
    """As clients of services have it."""

    retry_after = 0.01


def make_policy(call: Any, kind: Any = "scalar", **on_error: Any) -> Policy:
    function = declare(b"", ["id"], kind=kind, on_error=on_error)
    caller = DirectCaller(LoadedFunction(call, kind), function, KINDS)
    return Policy(function, caller, KINDS, sleep=lambda _: None)


def compute(policy: Policy, count: int = 20) -> Any:
    return policy.compute(pa.record_batch({"id": pa.array(range(count), pa.int64())}))


def fails_at(*rows: int) -> Any:
    def call(n: int) -> int:
        calls[n] += 1
        if n in rows:
            raise ValueError(f"no {n}")
        return 2 * n

    calls: Counter[int] = Counter()
    call.calls = calls  # type: ignore[attr-defined]
    return call


def in_arrays(call: Any) -> Any:
    return lambda ids: pa.array([call(n) for n in ids.to_pylist()], pa.int64())


@pytest.mark.parametrize("kind", ["scalar", "arrow"])
def test_the_first_row_that_fails_ends_the_batch(kind: str) -> None:
    call = fails_at(7, 13)
    policy = make_policy(in_arrays(call) if kind == "arrow" else call, kind)
    with pytest.raises(RowFailed) as found:
        compute(policy)
    assert (found.value.row, found.value.failure.text) == (7, "ValueError: no 7")
    if kind == "scalar":
        assert call.calls == dict.fromkeys(range(8), 1)


@pytest.mark.parametrize("kind", ["scalar", "arrow"])
def test_skipped_rows_are_null(kind: str) -> None:
    call = fails_at(0, 7, 19)
    done = compute(make_policy(in_arrays(call) if kind == "arrow" else call, kind, action="skip"))
    values = done.values.column(0).to_pylist()
    assert values == [None if n in (0, 7, 19) else 2 * n for n in range(20)]
    assert sorted(done.failures) == [0, 7, 19]
    if kind == "scalar":
        assert set(call.calls.values()) == {1}
        assert done.calls == 20


def test_too_many_skipped_rows_end_the_job() -> None:
    policy = make_policy(fails_at(1, 2, 3), action="skip", max_failed_rows=2)
    with pytest.raises(RowFailed) as found:
        compute(policy)
    assert found.value.note == "more than 2 rows failed"
    assert (found.value.row, list(found.value.others)) == (1, [2, 3])


@pytest.mark.parametrize("kind", ["scalar", "arrow"])
@pytest.mark.parametrize(
    "error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit]
)
def test_whatever_is_raised_is_the_row_s_failure(kind: str, error: type[BaseException]) -> None:
    def call(n: int) -> int:
        if n == 7:
            raise error
        return n

    done = compute(make_policy(in_arrays(call) if kind == "arrow" else call, kind, action="skip"))
    assert {row: f.exception for row, (f, _) in done.failures.items()} == {7: error.__name__}


def test_a_row_that_fails_when_it_is_tried_again_is_named() -> None:
    class RateLimitError(Exception):
        retry_after = 700

    seen: Counter[int] = Counter()

    def call(n: int) -> int:
        seen[n] += 1
        if n == 7:
            raise ValueError("first") if seen[n] == 1 else RateLimitError("slow")
        return n

    with pytest.raises(RowFailed) as found:
        compute(make_policy(call, action="retry", max_attempts=3, backoff_seconds=0))
    assert (found.value.row, found.value.tries) == (7, 2)


def test_refused_calls_do_not_count_as_time_in_the_function() -> None:
    left = [3]

    def call(ids: pa.Array) -> pa.Array:
        if left[0]:
            left[0] -= 1
            time.sleep(0.1)
            raise RateLimitError
        return ids

    assert compute(make_policy(call, "arrow")).seconds < 0.1


@pytest.mark.parametrize("kind", ["scalar", "arrow"])
def test_only_rows_that_failed_are_tried_again(kind: str) -> None:
    tries: Counter[int] = Counter()

    def flaky(n: int) -> int:
        tries[n] += 1
        if n % 5 == 0 and tries[n] < (3 if kind == "scalar" else 8):
            raise OSError("not now")
        return n

    policy = make_policy(
        in_arrays(flaky) if kind == "arrow" else flaky, kind, action="retry", max_attempts=9
    )
    done = compute(policy)
    assert done.values.column(0).to_pylist() == list(range(20))
    assert done.failures == {}
    if kind == "scalar":
        assert tries == {n: 3 if n % 5 == 0 else 1 for n in range(20)}


def test_other_exceptions_are_not_tried_again() -> None:
    call = fails_at(4)
    with pytest.raises(RowFailed):
        compute(make_policy(call, action="retry", match=("OSError",)))
    assert call.calls[4] == 1


def test_base_classes_match_and_limits_let_rows_be_empty() -> None:
    def call(n: int) -> int:
        if n == 4:
            raise ConnectionResetError("gone")
        return n

    options = {"match": ("OSError",), "max_attempts": 4, "max_failed_rows": 1}
    done = compute(make_policy(call, action="retry", **options))
    failure, tries = done.failures[4]
    assert (failure.exception, tries) == ("ConnectionResetError", 4)


@pytest.mark.parametrize("kind", ["scalar", "arrow"])
def test_rate_limits_wait_and_count_for_nothing(kind: str) -> None:
    refused: list[int] = []

    def busy(n: int) -> int:
        if n == 5 and len(refused) < 4:
            refused.append(n)
            raise RateLimitError("slow down")
        return n

    done = compute(make_policy(in_arrays(busy) if kind == "arrow" else busy, kind))
    assert done.values.column(0).to_pylist() == list(range(20))
    assert (len(refused), done.failures) == (4, {})


def test_a_status_of_429_is_a_rate_limit_and_patience_ends() -> None:
    class Refused(Exception):
        status_code = 429
        retry_after = 601

    def busy(n: int) -> int:
        raise Refused("no")

    with pytest.raises(RowFailed, match="Refused: no") as found:
        compute(make_policy(busy, action="skip"))
    assert found.value.note == "given up after 10 minutes without one success"


def test_a_wait_ends_when_the_job_is_stopped() -> None:
    def busy(n: int) -> int:
        raise RateLimitError

    function = declare(b"", ["id"])
    caller = DirectCaller(LoadedFunction(busy, "scalar"), function, KINDS)
    with pytest.raises(Stopped):
        compute(Policy(function, caller, KINDS, is_stopped=lambda: True))


def test_what_a_function_returns_is_checked() -> None:
    def text_of(call: Any, kind: str = "scalar") -> str:
        with pytest.raises(RowFailed) as found:
            compute(make_policy(call, kind), 1)
        return found.value.failure.text

    assert "column value, which is int64" in text_of(lambda n: "seven")
    assert "'seven'" in text_of(lambda n: "seven")
    assert "2 values for column value, and was given 1 rows" in text_of(
        lambda ids: pa.array([1, 2]), "arrow"
    )
    assert "returned string for column value, which is int64" in text_of(
        lambda ids: pa.array(["x"]), "arrow"
    )
    assert "returned double for column value" in text_of(lambda ids: pa.array([1.5]), "arrow")
    assert "a pyarrow Array of int64 is expected" in text_of(lambda ids: object(), "arrow")
    assert "StopIteration" in text_of(lambda n: next(iter(())))
    assert "SystemExit" in text_of(lambda n: exit(3))


@pytest.mark.parametrize("value", [2.5, "5", True, [1]])
def test_what_is_not_the_columns_sort_of_value_is_not_bent_to_it(value: Any) -> None:
    with pytest.raises(RowFailed, match="column value, which is int64"):
        compute(make_policy(lambda n: value))


@pytest.mark.parametrize("value", [2.0, None])
def test_what_loses_nothing_is_taken(value: Any) -> None:
    done = compute(make_policy(lambda n: value), 2)
    assert done.values.column(0).to_pylist() == [value, value]


def test_another_number_of_values_than_rows_is_the_functions_fault() -> None:
    policy = make_policy(lambda ids: ids[:1], "arrow", action="skip")
    with pytest.raises(RowFailed, match="returned 1 values for column value, and was given 20"):
        compute(policy)


def test_any_text_of_an_exception_can_be_told() -> None:
    def call(n: int) -> int:
        raise ValueError("bad \ud800 text")

    done = compute(make_policy(call, action="skip"), 1)
    failure, _ = done.failures[0]
    assert failure.message == "bad \\ud800 text"
    failure.traceback.encode()


def test_a_null_where_none_may_be_is_an_error() -> None:
    function = declare(b"", ["id"], nullable=False, on_error={"action": "skip"})
    caller = DirectCaller(LoadedFunction(lambda n: n or None, "scalar"), function, KINDS)
    done = compute(Policy(function, caller, KINDS))
    assert "not nullable" in done.failures[0][0].message


def table_of(tmp_path: Path, function: Any, **more: Any) -> Bench:
    return bench(tmp_path, DATA, function, ["id"], {"value": pa.int64()}, **more)


def test_a_failure_names_function_row_and_cause(tmp_path: Path) -> None:
    def helper(n: int) -> float:
        return 1 / (n - 60)

    def divide(n: int) -> int:
        return int(helper(n))

    table = table_of(tmp_path, divide, name="divide")
    failed = table.run()
    assert failed is not None
    assert failed.is_function
    assert failed.error == (
        "function divide (version 1) failed at row id 60 (fragment 1, offset 10): "
        "ZeroDivisionError: division by zero"
    )
    assert "in helper" in failed.detail
    assert "in divide" in failed.detail
    assert "penstock/jobs" not in failed.detail
    # The driver hears of it at once, and the ledger by the driver.
    (noted,) = table.errors()
    assert (noted.row_id, noted.exception, noted.tries) == (60, "ZeroDivisionError", 1)


def test_skipped_rows_are_told_and_not_fresh(tmp_path: Path) -> None:
    def odd(n: int) -> int:
        if n in (3, 77):
            raise ValueError("bad" * 5)
        print("row", n)
        return n

    table = table_of(tmp_path, odd, on_error={"action": "skip"})
    assert table.run() is None
    assert table.values() == [None if n in (3, 77) else n for n in range(100)]
    assert {(e.row_id, e.fragment, e.offset, e.inputs) for e in table.errors()} == {
        (3, 0, 3, "id=3"),
        (77, 1, 27, "id=77"),
    }
    assert "row 50" in table.printed()
    for note, offset in zip(table.notes(), (3, 27), strict=True):
        assert note.failed == 1
        assert note.file.path.startswith("bp-")
        found = LanceFileReader(f"{table.root}/data/{note.file.path}").metadata().schema.metadata
        mask = unpack(base64.b64decode(found[b"penstock.unfilled"]), 50)
        assert mask.nonzero()[0].tolist() == [offset]


def test_without_failures_a_file_is_complete(tmp_path: Path) -> None:
    table = table_of(tmp_path, lambda n: n, on_error={"action": "skip"})
    assert table.run() is None
    assert all(note.file.path.startswith("bf-") for note in table.notes())
    assert table.values() == list(range(100))


def test_a_stopped_job_stops_between_batches(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def slow(n: int) -> int:
        with open(log, "a") as file:
            file.write(f"{n}\n")
        time.sleep(0.02)
        return n

    table = table_of(tmp_path, slow)

    def stop() -> None:
        while not log.exists():
            time.sleep(0.01)
        table.folder.mkdir(parents=True, exist_ok=True)
        (table.folder / "stop-1").touch()

    stopping = threading.Thread(target=stop)
    stopping.start()
    assert table.run(batch_rows=5, max_rows=5) is None
    stopping.join()
    assert table.notes() == []
    assert len(log.read_text().split()) <= 40


def test_prints_are_bounded() -> None:
    output = PrintedOutput()
    for n in range(1000):
        output.add(f"line {n}")
    lines = output.take()
    assert len(lines) == 201
    assert lines[-1] == "(800 more lines were printed)"
    output.add("x" * 20_000)
    assert output.take() == ["(1 more lines were printed)"]
