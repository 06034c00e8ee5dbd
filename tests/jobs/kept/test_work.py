"""Finished values follow their rows: into rewritten fragments, later attempts and later jobs."""

import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.engine.attempt import JobCanceled
from penstock.lance.columns.computed import PART
from tests.harness.data.writers import writing
from tests.harness.jobs.canceled_jobs import (
    OTHER,
    OtherColumn,
    canceled,
    expected,
)
from tests.harness.jobs.function_tables import (
    FunctionTable,
    bound_field,
    fill_and_die,
    make_table,
)
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.jobs.kernel import declare, seal


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


def slowly(seconds: float) -> Any:
    def call(text: str, number: int) -> str:
        time.sleep(seconds)
        return f"{text}:{number}"

    return call


def work_beside_a_writer(tmp_path: Path, rows: int, seconds: float, every: float) -> None:
    table = make_table(tmp_path, slowly(seconds), rows=rows, fragments=6)
    with writing(table, every) as writer:
        table.fill(checkpoint_size=8)
        calls = len(table.take_calls())
        assert calls <= rows + writer.changed
        assert writer.compacted
    table.fill()
    calls += len(table.take_calls())
    assert calls <= rows + writer.added + writer.changed
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_a_job_ends_beside_a_writer_that_compacts(tmp_path: Path) -> None:
    work_beside_a_writer(tmp_path, 240, 0.01, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "seconds"), [(240, 0.03), (2_000, 0.008)])
def test_a_long_job_ends_beside_a_writer_that_compacts(
    tmp_path: Path, rows: int, seconds: float
) -> None:
    work_beside_a_writer(tmp_path, rows, seconds, 0.3)


def test_a_compaction_before_the_commit_costs_no_call(table: FunctionTable) -> None:
    compact = once(lambda: table.open().optimize.compact_files())
    done = table.fill(HeldAttempt(on_fence=compact))
    assert (len(table.take_calls()), done.function_calls, done.rows_left) == (40, 40, 0)
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_only_rows_with_other_inputs_are_computed_again(table: FunctionTable) -> None:
    def rewrite() -> None:
        table.open().update({"text": "'new'"}, where="id % 10 = 4")
        table.open().update({"other": "7"}, where="id % 10 = 5")
        table.open().optimize.compact_files()

    table.fill(HeldAttempt(on_fence=once(rewrite)))
    assert len(table.take_calls()) == 44
    assert table.values() == expected(table)


@pytest.mark.parametrize("rewritten", [False, True])
def test_the_next_job_uses_what_a_canceled_one_finished(
    table: FunctionTable, rewritten: bool
) -> None:
    before = table.open().version
    canceled(table)
    assert (len(table.take_calls()), table.open().version) == (40, before)
    if rewritten:
        table.open().update({"other": "7"}, where="id < 15")
        table.open().optimize.compact_files()
    done = table.fill()
    assert (table.take_calls(), done.function_calls, done.rows) == ([], 0, 40)
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_rows_that_a_restore_brings_back_cost_their_own_calls_only(table: FunctionTable) -> None:
    before: Any = table.open()
    table.open().delete("id % 10 = 3")
    canceled(table)
    assert len(table.take_calls()) == 36
    before.restore()
    table.fill()
    assert len(table.take_calls()) == 4
    assert table.values() == expected(table)


def test_the_next_job_for_more_rows_uses_what_a_canceled_one_finished(table: FunctionTable) -> None:
    canceled(table, where="id % 2 = 0")
    assert len(table.take_calls()) == 20
    table.fill()
    assert len(table.take_calls()) == 20
    assert table.values() == expected(table)


def test_force_does_not_take_what_another_job_finished(table: FunctionTable) -> None:
    canceled(table)
    table.take_calls()
    assert table.fill(force=True).function_calls == 40


def test_another_version_of_the_function_takes_nothing_of_the_last(table: FunctionTable) -> None:
    canceled(table)
    table.use(lambda text, number: f"{number}:{text}", "2")
    table.take_calls()
    assert table.fill().function_calls == 40
    assert table.loose_files() == set()


def count_lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


def test_a_cancel_in_the_middle_of_a_fragment_keeps_what_was_computed(tmp_path: Path) -> None:
    table = make_table(tmp_path, slowly(0.01), rows=120, fragments=1)

    def cancel() -> None:
        if count_lines(table.log) > 20:
            raise JobCanceled

    attempt = HeldAttempt(on_check=cancel)
    with pytest.raises(JobCanceled):
        table.fill(attempt, checkpoint_size=5)
    table.leave(attempt)
    assert 20 < count_lines(table.log) < 100
    table.open().update({"other": "7"}, where="id < 9")
    table.open().optimize.compact_files()
    table.fill(checkpoint_size=5)
    assert len(table.take_calls()) <= 120 + 5
    assert table.values() == expected(table)


@pytest.mark.parametrize("tasks", [1, 2])
def test_parts_are_there_for_rows_that_moved_when_their_fragment_is_done(
    tmp_path: Path, tasks: int
) -> None:
    table = make_table(tmp_path, fragments=1)
    small = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 40}
    assert fill_and_die(table, "part written", HeldAttempt().job, **small) == -signal.SIGKILL
    table.open().update({"other": "7"}, where="id < 9")
    table.fill(concurrency=tasks)
    assert len(table.take_calls()) == 40
    assert table.values() == expected(table)


def test_what_a_failed_job_finished_is_kept_and_its_failed_row_is_tried_again(
    tmp_path: Path,
) -> None:
    trap = tmp_path / "trap"
    trap.touch()

    def fail(text: str, number: int) -> str:
        if (text, number) == ("t4", 6) and trap.exists():
            raise ValueError("no")
        return f"{text}:{number}"

    table = make_table(tmp_path, fail)
    attempt = HeldAttempt()
    with pytest.raises(FunctionFailed):
        table.fill(attempt, checkpoint_size=1)
    table.leave(attempt)
    trap.unlink()
    table.fill(checkpoint_size=1)
    assert len(table.take_calls()) == 41
    assert table.values() == expected(table)


def test_rows_that_a_canceled_job_skipped_are_all_that_is_tried_again(tmp_path: Path) -> None:
    def fail_some(text: str, number: int) -> str:
        if number == 6:
            raise ValueError("no")
        return f"{text}:{number}"

    table = make_table(tmp_path, fail_some, on_error={"action": "skip"})
    canceled(table)
    table.take_calls()
    done = table.fill()
    assert {call.split(",")[1] for call in table.take_calls()} == {"6"}
    assert (done.rows_failed, done.rows) == (5, 40)


def test_a_killed_worker_leaves_no_unfinished_file_when_its_job_is_done(
    table: FunctionTable,
) -> None:
    attempt = HeldAttempt(number=2)
    small = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 1}
    assert fill_and_die(table, "part written", attempt.job, **small) == -signal.SIGKILL
    begun = list(table.path.rglob(".tmp*"))
    assert begun
    table.fill(attempt)
    assert list(table.path.rglob(".tmp*")) == []
    assert table.values() == expected(table)


def rename(table: FunctionTable, name: str) -> None:
    (output,) = table.function.outputs
    change: Any = {"path": output.column, "name": name}
    table.open().alter_columns(change)
    renamed = msgspec.structs.replace(output, column=name)
    table.function = msgspec.structs.replace(table.function, outputs=(renamed,))


def test_what_is_kept_is_found_when_the_column_got_another_name(table: FunctionTable) -> None:
    canceled(table)
    table.take_calls()
    rename(table, "renamed")
    table.open().optimize.compact_files()
    table.fill()
    assert table.take_calls() == []
    assert table.values() == expected(table)


@pytest.mark.parametrize("name", ["renamed", "__penstock_failed"])
def test_parts_are_found_whatever_the_column_is_called(tmp_path: Path, name: str) -> None:
    table = make_table(tmp_path, fragments=1)
    rename(table, name)
    small = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 40}
    job = HeldAttempt().job
    named = {"column": name, "columns": [name]}
    assert fill_and_die(table, "part written", job, **small, **named) == -signal.SIGKILL
    assert len(table.take_calls()) == 40
    rename(table, "again" if name == "renamed" else name)
    table.open().update({"other": "7"}, where="id < 9")
    table.fill()
    assert table.take_calls() == []
    assert table.values() == expected(table)


def test_columns_of_one_function_that_swap_their_names_keep_their_values(tmp_path: Path) -> None:
    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"a": batch["text"], "b": pc.utf8_upper(batch["text"])})

    made = make_table(tmp_path)
    content = seal(split, "batch")
    function = declare(content, ["text"], ["a", "b"], kind="batch")
    (made.path / "_udfs" / function.sha256).write_bytes(content)
    fields = [bound_field(name, function, OTHER) for name in ("a", "b")]
    parts = [{**(each.metadata or {}), PART: each.name} for each in fields]
    bound = [each.with_metadata(part) for each, part in zip(fields, parts, strict=True)]
    made.open().add_columns(pa.schema(bound))
    table = OtherColumn(made.path, made.catalog, made.engine, function, made.log)
    canceled(table)
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        change: Any = {"path": old, "name": new}
        table.open().alter_columns(change)
    table.open().optimize.compact_files()
    assert table.fill(columns=["b", "a"], column="b").function_calls == 0
    rows = table.open().to_table(columns=["text", "a", "b"]).to_pylist()
    assert [(row["b"], row["a"]) for row in rows] == [
        (row["text"], row["text"].upper()) for row in rows
    ]


def test_a_kept_file_that_a_clean_up_takes_before_the_commit_is_computed_again(
    table: FunctionTable,
) -> None:
    canceled(table)
    table.take_calls()
    first, *_ = sorted((table.path / "data").glob("bf-*"))
    done = table.fill(HeldAttempt(on_fence=once(first.unlink)))
    assert (len(table.take_calls()), done.rows_left) == (10, 0)
    assert table.values() == expected(table)
    assert table.loose_files() == set()
