"""Backfills by functions, with the product's recipe and kernel in the test's own process."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import FunctionFailed, LeaseLost
from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.spark.tasks import Engine
from penstock.lance import refs
from penstock.lance.session.remote import Location
from tests.harness.jobs.filled_tables import BINDING, some_rows
from tests.harness.jobs.function_tables import FunctionTable, fill_and_die, join, make_table
from tests.harness.jobs.held_attempt import HeldAttempt, once


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


def expected(table: FunctionTable) -> dict[int, str]:
    rows = table.open().to_table(columns=["id", "text", "number"]).to_pylist()
    return {row["id"]: join(row["text"], row["number"]) for row in rows}


def fail_some(text: str, number: int) -> str:
    if number == 3:
        raise ValueError(f"no {number}")
    return join(text, number)


def test_every_row_gets_its_value_in_one_version(table: FunctionTable) -> None:
    attempt = HeldAttempt()
    before = table.open().version
    done = table.fill(attempt)
    assert table.values() == expected(table)
    assert len(table.take_calls()) == done.function_calls == done.rows == 40
    assert (done.mode, done.committed_versions) == ("full", (before + 1,))
    assert (done.rows_left, done.rows_failed, done.calls_saved) == (0, 0, 0)
    assert attempt.phases == ["planning", "computing", "committing", "finishing"]
    assert done.rate is not None
    assert done.rate > 0
    assert attempt.told["rows_done"] == attempt.told["rows_total"] == 40
    assert (attempt.told["rows_left"], attempt.told["rows_failed"]) == (0, 0)
    transaction: Any = table.open().read_transaction(done.version)
    assert transaction.transaction_properties["penstock.column"] == BINDING
    assert transaction.transaction_properties["penstock.function"] == "f@1"
    assert table.loose_files() == set()


def test_the_watermark_names_what_is_not_filled_and_keeps_its_version(table: FunctionTable) -> None:
    done = table.fill(where="id < 30")
    mark = done.watermark
    assert mark is not None
    assert (mark.version, mark.function, mark.unfilled_rows) == (done.version, "f@1", 10)
    assert table.lists() == {mark.unfilled}
    tags = table.open().tags.list()
    assert [tag["version"] for tag in tags.values()] == [mark.version]
    assert list(tags) == [f"penstock-backfill-{BINDING[:12]}"]
    again = table.fill().watermark
    assert again is not None
    assert (again.unfilled, again.unfilled_rows) == (None, 0)
    assert [tag["version"] for tag in table.open().tags.list().values()] == [again.version]


def test_a_backfill_without_work_writes_nothing(table: FunctionTable) -> None:
    first = table.fill(num_frags=3)
    before = {path: path.stat().st_mtime_ns for path in table.path.rglob("*") if path.is_file()}
    again = table.fill(where="id < 30")
    assert (again.watermark, again.function_calls) == (first.watermark, 0)
    after = {path: path.stat().st_mtime_ns for path in table.path.rglob("*") if path.is_file()}
    assert after == before


def test_a_branch_whose_version_is_kept_can_be_deleted(table: FunctionTable) -> None:
    table.branch("dev")
    table.fill(branch="dev")
    place = Location(str(table.path), "").place()
    assert refs.find_references(place, "dev") == []
    refs.delete_branch(place, "dev")
    assert (table.open().tags.list(), table.open().branches.list()) == ({}, {})


def test_lists_of_rows_that_no_watermark_names_are_removed(table: FunctionTable) -> None:
    for n in range(8):
        table.fill(where=f"id = {n}")
    assert len(table.lists()) <= 4
    named = {mark.unfilled for mark in table.watermarks[""]}
    assert named <= table.lists()


WRITERS: dict[str, Callable[[FunctionTable], object]] = {
    "append": lambda t: t.open().insert(some_rows(900, 5)),
    "delete": lambda t: t.open().delete("id % 7 = 0"),
    "delete a fragment": lambda t: t.open().delete("id < 10"),
    "update an input": lambda t: t.open().update({"text": "'new'"}, where="id >= 33"),
    "update another": lambda t: t.open().update({"other": "7"}, where="id >= 33"),
    "compact": lambda t: t.open().optimize.compact_files(target_rows_per_fragment=25),
    "add a column": lambda t: t.open().add_columns({"more": "id * 2"}),
    "write a value": lambda t: t.open().update({"value": "'foreign'"}, where="id = 12"),
    "index": lambda t: t.open().create_scalar_index("id", "BTREE"),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("granularity", [None, 2])
def test_a_backfill_ends_right_whatever_others_do_meanwhile(
    table: FunctionTable, writer: str, granularity: int | None
) -> None:
    attempt = HeldAttempt(on_fence=once(lambda: WRITERS[writer](table)))
    done = table.fill(attempt, commit_granularity=granularity)
    stale = {id for id, value in table.values().items() if value != expected(table)[id]}
    assert done.rows_left == len(stale)
    table.take_calls()
    assert table.fill().function_calls == len(table.take_calls()) == len(stale)
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_rows_that_arrive_meanwhile_are_left_and_counted(table: FunctionTable) -> None:
    def write() -> None:
        table.open().insert(some_rows(900, 5))
        table.open().optimize.compact_files(target_rows_per_fragment=25)

    attempt = HeldAttempt(on_fence=once(write))
    done = table.fill(attempt)
    assert done.rows_left == attempt.told["rows_left"] == 5
    assert {id for id, value in table.values().items() if value is None} == set(range(900, 905))


def test_values_follow_rows_that_an_update_of_another_column_moved(table: FunctionTable) -> None:
    update = once(lambda: table.open().update({"other": "7"}, where="id % 10 = 4"))
    done = table.fill(HeldAttempt(on_fence=update))
    assert (len(table.take_calls()), done.rows_left) == (40, 0)
    assert table.values() == expected(table)
    assert table.fill().function_calls == 0


def test_a_value_that_somebody_wrote_meanwhile_is_not_overwritten(table: FunctionTable) -> None:
    table.fill()
    table.open().update({"text": "'new'"}, where="id = 30")
    write = once(lambda: table.open().update({"value": "'theirs'"}, where="id = 30"))
    done = table.fill(HeldAttempt(on_fence=write))
    assert done.rows_left in (0, 1)
    assert table.values()[30] in ("theirs", expected(table)[30])
    table.fill()
    assert table.values() == expected(table)


def test_rows_that_a_restore_brings_back_meanwhile_get_values(table: FunctionTable) -> None:
    before = table.open().version
    table.open().delete("id = 3")

    def swap_the_deleted_row() -> None:
        earlier: Any = table.open().checkout_version(before)
        earlier.restore()
        table.open().delete("id = 5")

    table.fill(HeldAttempt(on_fence=once(swap_the_deleted_row)))
    table.fill()
    assert table.values() == expected(table)


def test_a_later_attempt_uses_the_files_of_an_earlier_one(table: FunctionTable) -> None:
    def die() -> None:
        raise LeaseLost

    first = HeldAttempt(on_fence=die)
    with pytest.raises(LeaseLost):
        table.fill(first, where="id < 33")
    assert len(table.take_calls()) == 33
    table.open().delete("id = 1")
    done = table.fill(HeldAttempt(job=first.job, number=2), where="id < 33")
    assert (table.take_calls(), done.function_calls) == ([], 0)
    assert table.fill().function_calls == 7
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_a_later_attempt_finds_the_commit_of_an_earlier_one(table: FunctionTable) -> None:
    first = HeldAttempt()
    done = table.fill(first, force=True)
    again = table.fill(HeldAttempt(job=first.job, number=2), force=True)
    assert (again.version, again.rows, again.function_calls) == (done.version, 40, 0)
    assert again.watermark == done.watermark


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "calls"),
    [
        ("files written", 0),
        ("backfill committed", 0),
        ("watermark written", 0),
        ("part written", 39),
    ],
)
def test_a_process_that_dies_leaves_its_work_to_the_next(
    table: FunctionTable, point: str, calls: int
) -> None:
    small: dict[str, Any] = {}
    if point == "part written":
        small = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 1}
        small["max_checkpoint_size"] = 1
    attempt = HeldAttempt(number=2)
    assert fill_and_die(table, point, attempt.job, **small) == -signal.SIGKILL
    table.take_calls()
    done = table.fill(attempt, **small)
    assert len(table.take_calls()) == done.function_calls == calls
    assert done.rows == 40
    assert table.values() == expected(table)
    assert table.fill().function_calls == 0
    assert table.loose_files() == set()


def test_a_cancel_changes_nothing_and_leaves_nothing(table: FunctionTable) -> None:
    before = table.open().version

    def cancel() -> None:
        raise JobCanceled

    attempt = HeldAttempt(on_fence=cancel)
    with pytest.raises(JobCanceled):
        table.fill(attempt)
    table.sweep(attempt)
    assert table.open().version == before
    assert (table.loose_files(), table.lists()) == (set(), set())


def test_force_computes_what_is_fresh(table: FunctionTable) -> None:
    table.fill()
    assert table.fill(force=True).function_calls == 40
    assert table.fill(force=True, where="id < 5").function_calls == 5
    assert table.fill().function_calls == 0


def test_rows_that_fail_are_skipped_told_and_tried_again(tmp_path: Path) -> None:
    table = make_table(tmp_path, fail_some, on_error={"action": "skip"})
    attempt = HeldAttempt()
    done = table.fill(attempt)
    bad = {id for id, value in expected(table).items() if value.endswith(":3")}
    assert (done.rows_failed, done.rows_left) == (len(bad), 0)
    assert attempt.told["rows_failed"] == len(attempt.failed) == len(bad)
    assert {id for id, value in table.values().items() if value is None} == bad
    assert table.explain()["function_calls"] == len(bad)
    table.use(join, "1")
    ledger = frozenset(row.row_id for row in attempt.failed[:2])
    assert table.fill(HeldAttempt(ledger=ledger), errors_only=True).function_calls == 2
    assert table.fill().function_calls == len(bad) - 2
    assert table.values() == expected(table)


def test_rows_that_failed_in_an_earlier_attempt_may_go_well(tmp_path: Path) -> None:
    def fail_once(text: str, number: int) -> str:
        if number == 3 and not (tmp_path / "well").exists():
            raise ValueError
        return join(text, number)

    def die() -> None:
        raise LeaseLost

    limit = {"action": "skip", "max_failed_rows": 100}
    table = make_table(tmp_path, fail_once, rows=10, fragments=1, on_error=limit)
    first = HeldAttempt(on_fence=die)
    with pytest.raises(LeaseLost):
        table.fill(first)
    table.open().update({"number": "3"}, where="id = 0")
    (tmp_path / "well").touch()
    second = HeldAttempt(job=first.job, number=2)
    done = table.fill(second)
    assert done.rows_failed == second.told["rows_failed"] == len(first.failed) == 1
    assert table.fill().function_calls == 1
    assert table.values() == expected(table)


def test_a_row_that_fails_fails_the_job_and_changes_nothing(tmp_path: Path) -> None:
    table = make_table(tmp_path, fail_some)
    before = table.open().version
    attempt = HeldAttempt()
    with pytest.raises(FunctionFailed, match=r"function f \(version 1\) failed at row id 3 ") as e:
        table.fill(attempt, concurrency=1)
    assert e.value.message.endswith("(fragment 0, offset 3): ValueError: no 3")
    assert "fail_some" in e.value.detail
    table.sweep(attempt)
    assert (table.open().version, table.loose_files()) == (before, set())


def test_groups_that_were_whole_before_a_row_failed_stay(tmp_path: Path) -> None:
    def fail_late(text: str, number: int) -> str:
        if (text, number) == ("t4", 6):
            raise ValueError("too late")
        return f"{text}:{number}"

    table = make_table(tmp_path, fail_late)
    attempt = HeldAttempt()
    with pytest.raises(FunctionFailed, match="too late"):
        table.fill(attempt, commit_granularity=1, concurrency=1)
    table.sweep(attempt)
    filled = {id for id, value in table.values().items() if value is not None}
    assert filled == set(range(30))
    assert "rows_left" not in attempt.told


@pytest.mark.parametrize("limit", [{"max_failed_rows": 2}, {"max_failed_fraction": 0.1}])
def test_too_many_failed_rows_fail_the_job(tmp_path: Path, limit: dict[str, Any]) -> None:
    table = make_table(tmp_path, fail_some, on_error={"action": "skip", **limit})
    before = table.open().version
    with pytest.raises(FunctionFailed, match=f"more than {next(iter(limit))}"):
        table.fill()
    assert table.open().version == before


def test_what_the_function_prints_is_in_the_jobs_log(tmp_path: Path) -> None:
    def shout(text: str, number: int) -> str:
        print("given", number)
        return text

    table = make_table(tmp_path, shout, rows=4, fragments=1)
    attempt = HeldAttempt()
    table.fill(attempt)
    assert [line for line in attempt.lines if line.startswith("given")] == [
        f"given {n}" for n in range(4)
    ]


def test_read_version_and_num_frags(table: FunctionTable) -> None:
    before = table.open().version
    table.open().insert(some_rows(500, 10))
    assert table.fill(read_version=before, num_frags=3).function_calls == 30
    done = table.fill(read_version=before)
    assert (done.function_calls, done.rows_left) == (10, 10)
    assert table.fill().function_calls == 10


def test_a_table_without_stable_row_ids_is_filled_by_its_files(tmp_path: Path) -> None:
    table = make_table(tmp_path, stable=False)
    assert table.fill().function_calls == 40
    assert table.fill().function_calls == 0
    table.open().update({"text": "'new'"}, where="id < 3")
    assert table.fill().function_calls == 3
    assert table.values() == expected(table)


def test_functions_run_on_spark(tmp_path: Path, engine: Engine) -> None:
    table = make_table(tmp_path, engine=engine)
    table.fill(where="id < 20")
    table.open().update({"text": "'new'"}, where="id < 3")
    assert table.fill().function_calls == 23
    assert len(table.take_calls()) == 43
    assert table.values() == expected(table)
