"""Parts of a column are found by row and inputs, whatever became of the version they came from."""

import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.jobs.canceled_jobs import expected
from tests.harness.jobs.filled_tables import some_rows
from tests.harness.jobs.function_tables import FunctionTable, fill_and_die, make_table
from tests.harness.jobs.held_attempt import HeldAttempt, once

SMALL: dict[str, Any] = {"batch_checkpoint_flush_interval_seconds": 0, "checkpoint_size": 30}


def killed(folder: Path, **more: Any) -> FunctionTable:
    """A table of 40 rows in one fragment whose job died when it had kept 30 of them."""
    table = make_table(folder, fragments=1, **more)
    assert fill_and_die(table, "part written", HeldAttempt().job, **SMALL) == -signal.SIGKILL
    assert len(table.take_calls()) == 30
    return table


def clean_up(table: FunctionTable) -> None:
    newest: Any = table.open()
    newest.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)


def compact(table: FunctionTable) -> None:
    table.open().insert(some_rows(40, 5))
    table.open().optimize.compact_files()


def restore(table: FunctionTable) -> None:
    before: Any = table.open()
    table.open().update({"text": "'new'"}, where="id < 9")
    before.restore()


@pytest.mark.parametrize(("change", "calls"), [(compact, 15), (restore, 10)])
def test_a_version_that_is_cleaned_up_costs_no_call(
    tmp_path: Path, change: Callable[[FunctionTable], None], calls: int
) -> None:
    table = killed(tmp_path)
    change(table)
    clean_up(table)
    table.fill()
    assert len(table.take_calls()) == calls
    assert table.values() == expected(table)
    assert not list(table.path.glob("_jobs/kept-*"))


def test_rows_that_took_the_ids_of_others_after_a_restore_are_computed(tmp_path: Path) -> None:
    table = make_table(tmp_path, rows=10, fragments=1)
    before: Any = table.open()
    table.open().insert(some_rows(10, 30))
    assert fill_and_die(table, "part written", HeldAttempt().job, **SMALL) == -signal.SIGKILL
    before.restore()
    table.open().insert(some_rows(50, 30))
    table.take_calls()
    table.fill()
    assert table.values() == expected(table)
    assert len(table.take_calls()) >= 30


def test_parts_are_used_in_tables_without_stable_row_ids(tmp_path: Path) -> None:
    table = killed(tmp_path, stable=False)
    table.open().delete("id = 3")
    table.fill()
    assert len(table.take_calls()) == 10
    assert table.values() == expected(table)


def test_parts_in_other_types_are_not_used(tmp_path: Path) -> None:
    table = killed(tmp_path)
    (path,) = table.path.glob("_jobs/kept-column-*/*.arrow")
    stored = pa.ipc.open_file(path.read_bytes()).read_all()
    other = stored.set_column(3, "value", stored.column(3).cast(pa.large_string()))
    with pa.ipc.new_file(str(path), other.schema) as file:
        file.write_table(other)
    table.fill()
    assert len(table.take_calls()) == 40
    assert table.values() == expected(table)


def test_what_an_older_release_left_is_no_matter_and_is_swept(tmp_path: Path) -> None:
    table = killed(tmp_path)
    (folder,) = table.path.glob("_jobs/kept-column-*")
    (folder / "parts").mkdir()
    name = f"0-{'0' * 32}-1-0-40-{'a' * 20}.arrow"
    (folder / "parts" / name).write_bytes(b"in another form")
    table.fill()
    assert len(table.take_calls()) == 10
    assert not list(table.path.glob("_jobs/kept-*"))


def test_force_takes_only_parts_of_its_own_job(tmp_path: Path) -> None:
    table = make_table(tmp_path, fragments=1)
    job = HeldAttempt().job
    assert fill_and_die(table, "part written", job, force=True, **SMALL) == -signal.SIGKILL
    table.take_calls()
    assert table.fill(HeldAttempt(job=job, number=2), force=True).function_calls == 10
    table.take_calls()
    assert fill_and_die(table, "part written", HeldAttempt().job, force=True, **SMALL) < 0
    table.take_calls()
    assert table.fill(force=True).function_calls == 40


def test_rows_that_failed_do_not_keep_a_job_from_its_end(tmp_path: Path) -> None:
    def fail_some(text: str, number: int) -> str:
        if number == 6:
            raise ValueError("no")
        return f"{text}:{number}"

    table = make_table(tmp_path, fail_some, on_error={"action": "skip"})

    def rewrite() -> None:
        table.open().update({"text": "'new'"}, where="id % 10 = 4")
        table.open().optimize.compact_files()

    done = table.fill(HeldAttempt(on_fence=once(rewrite)))
    failing = sum(row["number"] == 6 for row in table.open().to_table().to_pylist())
    assert len(table.take_calls()) <= 44
    assert (done.rows_failed, done.rows_left) == (failing, 0)
    assert table.loose_files() == set()
