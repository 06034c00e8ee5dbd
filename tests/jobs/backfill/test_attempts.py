"""What was committed stays counted, whichever attempt or job did it, and whatever others do."""

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed, LeaseLost, PenstockError, VersionNotFound
from penstock.jobs.backfill import watermarks
from penstock.jobs.engine.attempt import is_passing
from penstock.jobs.kept.store import name_column
from penstock.jobs.kept.sweep import KEPT_SECONDS
from penstock.lance.errors import translate
from tests.harness.jobs.filled_tables import some_rows
from tests.harness.jobs.function_tables import FunctionTable, fill_and_die, join, make_table
from tests.harness.jobs.held_attempt import HeldAttempt


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


def at_fence(number: int, work: Callable[[], object]) -> Callable[[], None]:
    seen = [0]

    def call() -> None:
        seen[0] += 1
        if seen[0] == number:
            work()

    return call


def lose() -> None:
    raise LeaseLost("gone")


def rewrite(table: FunctionTable, fragment: int) -> None:
    """Other numbers in a fragment that stays where it is."""
    dataset = table.open()
    found: Any = dataset.get_fragment(fragment)
    ids = found.to_table(columns=["id"])["id"]
    new = pa.table({"id": ids, "number": pa.array([99] * len(ids), pa.int64())})
    metadata, fields = found.update_columns(new, left_on="id", right_on="id")
    change = lance.LanceOperation.Update(updated_fragments=[metadata], fields_modified=fields)
    lance.LanceDataset.commit(dataset, change, read_version=dataset.version)


def is_right(table: FunctionTable) -> bool:
    rows = table.open().to_table(columns=["text", "number", "value"]).to_pylist()
    return all(row["value"] == join(row["text"], row["number"]) for row in rows)


def test_num_frags_counts_what_a_killed_attempt_committed(table: FunctionTable) -> None:
    job = str(uuid.uuid4())
    assert fill_and_die(table, "backfill committed", job, num_frags=1)
    assert len(table.take_calls()) == 10
    table.open().optimize.compact_files()
    done = table.fill(HeldAttempt(job=job, number=2), num_frags=1)
    assert (table.take_calls(), done.rows) == ([], 10)


def test_a_fragment_that_changes_after_its_commit_is_committed_again(table: FunctionTable) -> None:
    def change() -> None:
        rewrite(table, 0)
        rewrite(table, 3)

    done = table.fill(HeldAttempt(on_fence=at_fence(2, change)), commit_granularity=1)
    assert is_right(table)
    assert (done.rows_left, done.committed_fragments) == (0, (0, 1, 2, 3))
    assert len(table.take_calls()) == done.function_calls == 60
    assert done.rows == 50


def test_a_compaction_after_a_kill_costs_nothing(table: FunctionTable) -> None:
    first = HeldAttempt(on_fence=at_fence(3, lose))
    with pytest.raises(LeaseLost):
        table.fill(first, commit_granularity=1)
    table.take_calls()
    table.open().optimize.compact_files()
    assert table.explain()["function_calls"] == 20
    done = table.fill(HeldAttempt(job=first.job, number=2))
    # Two fragments were committed, and the files of the others were finished.
    assert (table.take_calls(), done.rows) == ([], 40)
    assert is_right(table)


def test_a_compaction_between_two_commits_costs_nothing(table: FunctionTable) -> None:
    def compact() -> None:
        table.open().optimize.compact_files(target_rows_per_fragment=20)

    done = table.fill(HeldAttempt(on_fence=at_fence(2, compact)), commit_granularity=1)
    assert is_right(table)
    # The files of three fragments were ready, and did not fit any more.
    assert done.function_calls == len(table.take_calls()) == 40
    assert table.explain()["function_calls"] == 0


def test_what_no_watermark_speaks_of_is_found(table: FunctionTable) -> None:
    table.fill(num_frags=1)
    # As after a job that failed, or was canceled, behind its first commits.
    table.watermarks.clear()
    table.open().optimize.compact_files()
    assert table.fill().function_calls == 30
    assert is_right(table)


def test_the_limit_of_failed_rows_counts_files_of_earlier_attempts(tmp_path: Path) -> None:
    def fail_some(text: str, number: int) -> str:
        if number == 3:
            raise ValueError("no")
        return join(text, number)

    table = make_table(tmp_path, fail_some, on_error={"action": "skip"})
    first = HeldAttempt(on_fence=lose)
    with pytest.raises(LeaseLost):
        table.fill(first)
    on_error = msgspec.structs.replace(table.function.on_error, max_failed_rows=5)
    table.function = msgspec.structs.replace(table.function, on_error=on_error)
    with pytest.raises(FunctionFailed, match=r"on 6 rows, more than max_failed_rows = 5; .*id 3 "):
        table.fill(HeldAttempt(job=first.job, number=2))


def test_a_paused_attempt_leaves_the_list_of_the_next(table: FunctionTable) -> None:
    table.fill(where="id < 30")
    place = table.catalog.locate(table.table, "").place()
    folder = name_column(table.spec().binding, "")
    before = table.lists()
    version = table.open().version
    watermarks.sweep_left(place, folder, set(), version)
    assert table.lists() == before
    watermarks.sweep_left(place, folder, set(), version + 1)
    assert table.lists() == set()


def test_a_version_of_the_same_number_is_not_the_known_one(table: FunctionTable) -> None:
    found = table.fill(where="id < 30").watermark
    assert found is not None
    table.watermarks[""] = [msgspec.structs.replace(found, transaction="another")]
    again = table.fill(where="id < 30").watermark
    assert again is not None
    assert again.transaction == found.transaction


@dataclass
class Hearing(HeldAttempt):
    """An attempt in which something happens when it says a certain thing."""

    word: str = ""
    work: Callable[[], object] = lambda: None

    def log(self, text: str, level: str = "info") -> None:
        if text.startswith(self.word):
            self.work()


def clean_up(table: FunctionTable) -> None:
    table.open().insert(some_rows(900, 1))
    table.open().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


def test_a_version_that_is_cleaned_up_before_it_is_read_is_a_lost_race(
    table: FunctionTable,
) -> None:
    first = Hearing(word="computing", work=lambda: clean_up(table))
    with pytest.raises(PenstockError) as raised:
        table.fill(first)
    assert is_passing(raised.value)
    table.fill(HeldAttempt(job=first.job, number=2))
    assert is_right(table)


@pytest.mark.parametrize("kind", ["expression", "function"])
def test_a_version_that_was_asked_for_and_is_gone_ends_the_job(
    table: FunctionTable, kind: str
) -> None:
    version = table.open().version
    clean_up(table)
    other: dict[str, Any] = {}
    if kind == "expression":
        other = {"function": None, "expression": "text"}
    with pytest.raises(VersionNotFound, match="cannot be opened") as raised:
        table.fill(read_version=version, **other)
    assert not is_passing(raised.value)


def test_a_manifest_that_is_gone_may_have_been_cleaned_up() -> None:
    text = "Not found: lake/t.lance/_versions/7.manifest, /home/x/rust/lance/src/dataset.rs:1:2"
    assert is_passing(translate(OSError(text)))
    assert not is_passing(translate(OSError("the manifest is corrupt")))


def test_without_stable_row_ids_there_is_nothing_to_keep(tmp_path: Path) -> None:
    table = make_table(tmp_path, stable=False)
    found = table.fill(num_frags=1).watermark
    assert found is not None
    assert (found.unfilled, found.unfilled_rows) == (None, 30)
    assert (table.lists(), table.open().tags.list()) == (set(), {})
    assert table.fill().function_calls == 30


def test_files_that_a_job_abandoned_on_a_branch_are_swept(table: FunctionTable) -> None:
    table.branch("dev")
    lost = HeldAttempt(on_fence=lose)
    with pytest.raises(LeaseLost):
        table.fill(lost, branch="dev")
    assert table.loose_files("dev")
    long_ago = time.time() - KEPT_SECONDS - 60
    for path in table.path.glob("_jobs/**/*"):
        os.utime(path, (long_ago, long_ago))
    table.fill()
    assert table.loose_files("dev") == set()
