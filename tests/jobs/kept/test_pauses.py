"""Backfills that are paused: what has begun ends and is kept, and nothing is called twice."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.engine.attempt import JobCanceled, JobPaused
from penstock.jobs.kept.sweep import ABANDONED_SECONDS, KEPT_SECONDS
from tests.harness.jobs.canceled_jobs import expected, make_other_column
from tests.harness.jobs.function_tables import FunctionTable, make_table
from tests.harness.jobs.held_attempt import HeldAttempt

ROWS = 120


def slow(text: str, number: int) -> str:
    time.sleep(0.01)
    return f"{text}:{number}"


def count_calls(table: FunctionTable) -> int:
    return table.log.read_text().count("\n") if table.log.exists() else 0


def pause_at(table: FunctionTable, wanted: int, *, job: str = "", number: int = 1) -> HeldAttempt:
    """An attempt that is paused when so many calls were made."""

    def check() -> None:
        if count_calls(table) >= wanted:
            raise JobPaused

    attempt = HeldAttempt(number=number, on_check=check)
    attempt.job = job or attempt.job
    return attempt


@pytest.mark.parametrize("threads", [1, 4])
def test_a_backfill_that_is_paused_twice_calls_nothing_again(tmp_path: Path, threads: int) -> None:
    table = make_table(tmp_path, slow, rows=ROWS, fragments=2)
    pace: Any = {"checkpoint_size": 5, "intra_applier_concurrency": threads}
    first = pause_at(table, 20)
    with pytest.raises(JobPaused):
        table.fill(first, **pace)
    with pytest.raises(JobPaused):
        table.fill(pause_at(table, 70, job=first.job, number=2), **pace)
    assert count_calls(table) >= 70
    table.fill(HeldAttempt(job=first.job, number=3), **pace)
    assert len(table.take_calls()) == ROWS
    assert table.values() == expected(table)
    assert table.loose_files() == set()


def test_a_pause_before_the_commit_keeps_finished_files(tmp_path: Path) -> None:
    table = make_table(tmp_path)

    def pause() -> None:
        raise JobPaused

    attempt = HeldAttempt(on_fence=pause)
    version = table.open().version
    with pytest.raises(JobPaused):
        table.fill(attempt)
    assert table.open().version == version
    table.take_calls()
    table.fill(HeldAttempt(job=attempt.job, number=2))
    assert table.take_calls() == []
    assert table.values() == expected(table)


def test_another_job_goes_on_from_what_a_paused_one_has_and_that_one_finds_nothing_to_do(
    tmp_path: Path,
) -> None:
    table = make_table(tmp_path, slow, rows=ROWS, fragments=2)
    paused = pause_at(table, 30)
    with pytest.raises(JobPaused):
        table.fill(paused, checkpoint_size=5)
    table.fill(checkpoint_size=5)
    assert count_calls(table) == ROWS
    version = table.open().version
    done = table.fill(HeldAttempt(job=paused.job, number=2), checkpoint_size=5)
    assert (count_calls(table), done.version, done.function_calls) == (ROWS, version, 0)
    assert table.loose_files() == set()


def test_a_cancel_ends_a_pause_that_waits_for_a_batch(tmp_path: Path) -> None:
    def stuck(text: str, number: int) -> str:
        time.sleep(60)
        return text

    table = make_table(tmp_path, stuck, timeout_seconds=100)
    asked = iter([*[JobPaused] * 3])

    def check() -> None:
        if count_calls(table):
            raise next(asked, JobCanceled)

    started = time.monotonic()
    with pytest.raises(JobCanceled):
        table.fill(HeldAttempt(on_check=check))
    assert time.monotonic() - started < 30


def test_what_a_paused_job_finished_outlives_that_of_a_dead_one(tmp_path: Path) -> None:
    table = make_table(tmp_path)

    def pause() -> None:
        raise JobPaused

    attempt = HeldAttempt(on_fence=pause)
    with pytest.raises(JobPaused):
        table.fill(attempt)
    other = make_other_column(table)
    age(table, ABANDONED_SECONDS + 60)
    other.fill()
    table.take_calls()
    table.fill(HeldAttempt(job=attempt.job, number=2))
    assert table.take_calls() == []


def test_what_a_paused_job_finished_goes_when_it_is_too_old(tmp_path: Path) -> None:
    table = make_table(tmp_path)

    def pause() -> None:
        raise JobPaused

    attempt = HeldAttempt(on_fence=pause)
    with pytest.raises(JobPaused):
        table.fill(attempt)
    other = make_other_column(table)
    age(table, KEPT_SECONDS + 60)
    other.fill()
    assert table.loose_files() == set()
    table.fill(HeldAttempt(job=attempt.job, number=2))
    assert table.values() == expected(table)


def age(table: FunctionTable, seconds: float) -> None:
    """Let everything that jobs left be so old."""
    then = time.time() - seconds
    for path in table.path.glob("_jobs/**/*"):
        os.utime(path, (then, then))
