"""Finished values follow their rows: into rewritten fragments, later attempts and later jobs."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import FunctionFailed, PenstockError
from penstock.jobs.backfill.leftovers import forget_column
from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.kept.work import KEPT_SECONDS
from penstock.lance.columns import computed
from penstock.lance.columns.computed import FUNCTION, PART
from penstock.lance.columns.fields import MetadataUpdate, update_field_metadata
from penstock.lance.session.remote import Location
from tests.harness.data.writers import writing
from tests.harness.jobs.filled_tables import BINDING
from tests.harness.jobs.function_tables import (
    FunctionTable,
    bound_field,
    fill_and_die,
    join,
    make_table,
)
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.jobs.kernel import declare, seal

OTHER = "f" * 32


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


def slowly(seconds: float) -> Any:
    def call(text: str, number: int) -> str:
        time.sleep(seconds)
        return f"{text}:{number}"

    return call


def expected(table: FunctionTable) -> dict[int, str]:
    rows = table.open().to_table(columns=["id", "text", "number"]).to_pylist()
    return {row["id"]: join(row["text"], row["number"]) for row in rows}


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


def canceled(table: FunctionTable, **options: Any) -> HeldAttempt:
    """A job that was canceled when all of it was computed."""

    def cancel() -> None:
        raise JobCanceled

    attempt = HeldAttempt(on_fence=cancel)
    with pytest.raises(JobCanceled):
        table.fill(attempt, **options)
    table.leave(attempt)
    return attempt


def make_other_column(table: FunctionTable) -> FunctionTable:
    """The same table with a second column by the same function."""
    output = msgspec.structs.replace(table.function.outputs[0], column="second")
    function = msgspec.structs.replace(table.function, outputs=(output,))
    table.open().add_columns(bound_field("second", function, OTHER))
    return OtherColumn(table.path, table.catalog, table.engine, function, table.log)


class OtherColumn(FunctionTable):
    def spec(self, branch: str = "", **options: Any) -> dict[str, Any]:
        return {**super().spec(branch, **options), "binding": OTHER}


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


def test_what_is_kept_goes_with_its_column_and_with_time(table: FunctionTable) -> None:
    canceled(table)
    other = make_other_column(table)
    table.open().drop_columns(["value"])
    other.fill()
    assert other.loose_files() == set()
    canceled(other, force=True)
    long_ago = time.time() - KEPT_SECONDS - 60
    for path in table.path.glob("_jobs/**/*"):
        os.utime(path, (long_ago, long_ago))
    other.leave(HeldAttempt())
    assert other.loose_files() == set()


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


@pytest.mark.parametrize("name", ["renamed", "_failed"])
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


def test_files_of_a_job_that_runs_stay_when_its_function_is_declared_anew(
    table: FunctionTable,
) -> None:
    other = make_other_column(table)

    def declare_anew() -> None:
        newer = msgspec.structs.replace(table.function, version="2")
        declared = {FUNCTION: msgspec.json.encode(newer).decode()}
        update_field_metadata(table.open(), [MetadataUpdate("value", declared)])
        other.fill()

    table.fill(HeldAttempt(on_fence=once(declare_anew)))
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_a_branch_that_somebody_deletes_is_no_matter_to_who_sweeps(
    table: FunctionTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    canceled(make_other_column(table))
    table.open().create_branch("b")
    read = computed.list_computed
    delete = once(lambda: table.open().branches.delete("b"))

    def delete_and_read(schema: pa.Schema) -> list[Any]:
        delete()
        return read(schema)

    monkeypatch.setattr(computed, "list_computed", delete_and_read)
    table.leave(HeldAttempt())
    assert not table.open().branches.list()


def test_a_job_for_some_rows_leaves_what_others_finished(table: FunctionTable) -> None:
    canceled(table)
    table.take_calls()
    table.fill(where="id = 1")
    table.fill()
    assert table.take_calls() == []
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_a_job_for_some_rows_leaves_parts_of_others_and_none_of_its_own(tmp_path: Path) -> None:
    table = make_table(tmp_path, fragments=1)
    small: dict[str, Any] = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 40}
    table.fill(where="id < 3", **small)
    assert table.loose_files() == set()
    assert fill_and_die(table, "part written", HeldAttempt().job, **small) == -signal.SIGKILL
    table.take_calls()
    table.fill(where="id < 5")
    table.fill()
    assert table.take_calls() == []
    assert table.values() == expected(table)


def test_what_is_kept_goes_when_its_column_is_dropped(table: FunctionTable) -> None:
    canceled(table)
    assert table.loose_files()
    table.open().drop_columns(["value"])
    forget_column(Location(str(table.path), ""), BINDING)
    assert table.loose_files() == set()
    assert not (table.path / "_jobs").exists()


def test_what_is_kept_of_another_column_stays(table: FunctionTable) -> None:
    canceled(table)
    forget_column(Location(str(table.path), ""), OTHER)
    table.fill()
    assert len(table.take_calls()) == 40


def test_a_job_whose_column_is_dropped_keeps_nothing(table: FunctionTable) -> None:
    attempt = HeldAttempt(on_fence=once(lambda: table.open().drop_columns(["value"])))
    with pytest.raises(PenstockError):
        table.fill(attempt)
    table.leave(attempt)
    assert table.loose_files() == set()
    assert not (table.path / "_jobs").exists()
