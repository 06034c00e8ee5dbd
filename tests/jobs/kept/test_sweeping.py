"""What is kept goes when nobody can use it any more, and not before."""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.errors import PenstockError
from penstock.jobs.backfill.leftovers import forget_column
from penstock.jobs.kept.sweep import KEPT_SECONDS
from penstock.lance.columns.computed import FUNCTION
from penstock.lance.columns.fields import MetadataUpdate, update_field_metadata
from penstock.lance.session.remote import Location
from tests.harness.jobs.canceled_jobs import OTHER, canceled, expected, make_other_column
from tests.harness.jobs.filled_tables import BINDING
from tests.harness.jobs.function_tables import (
    FunctionTable,
    fill_and_die,
    make_table,
)
from tests.harness.jobs.held_attempt import HeldAttempt, once


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


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


def test_branches_that_somebody_deletes_are_no_matter_to_who_sweeps(table: FunctionTable) -> None:
    canceled(make_other_column(table))
    stop = threading.Event()

    def branch() -> None:
        while not stop.is_set():
            table.open().create_branch("b")
            table.open().branches.delete("b")

    branching = threading.Thread(target=branch)
    branching.start()
    try:
        for _ in range(30):
            table.leave(HeldAttempt())
    finally:
        stop.set()
        branching.join()
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
