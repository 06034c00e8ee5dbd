"""Columns of a view that functions fill: called for rows whose inputs changed, for no others."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed, InvalidRequest
from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.refresh.run import sweep_refresh
from penstock.lance.diff.row_sets import make_row_set
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.local_views import LocalView, define

KINDS = {"id": pa.int64(), "a": pa.int64(), "value": pa.string()}


class Filled:
    """A view with a column that a function fills, and the lines that its calls leave."""

    def __init__(self, folder: Path, compute: Any = lambda a, x: f"{a}/{x}", **more: Any) -> None:
        self.history = SourceHistory(folder / "source", 3)
        (folder / "view").mkdir()
        self.log = folder / "calls"
        function = store(
            folder / "view", self.log, compute, "1", inputs=("a", "x"), kind="scalar", **more
        )
        definition = define(
            {"id": "id", "a": "a", "x": "s.x"},
            KINDS,
            ("id", "a", "s.x"),
            where="a IS NOT NULL",
            functions=[function],
        )
        self.view = LocalView(folder, definition).create()

    def take_calls(self) -> int:
        found = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        self.log.unlink(missing_ok=True)
        return found

    def expected(self) -> dict[int, tuple[Any, ...]]:
        rows = self.history.open().to_table(["id", "a", "s"], with_row_id=True).to_pylist()
        return {
            row["_rowid"]: (row["id"], row["a"], f"{row['a']}/{row['s']['x']}")
            for row in rows
            if row["a"] is not None
        }

    def check(self, calls: int, **options: Any) -> None:
        done = self.view.refresh(**options)
        assert self.view.rows() == self.expected()
        assert (done.function_calls, self.take_calls()) == (calls, calls)


def test_a_function_is_called_for_rows_whose_inputs_changed(tmp_path: Path) -> None:
    filled = Filled(tmp_path)
    filled.check(calls=len(filled.expected()))
    filled.check(calls=0)
    filled.history.open().update({"a": "77"}, where="id IN (1, 2, 3)")
    filled.check(calls=3)
    # Another column of the view: the values stay, and go with their rows.
    filled.history.open().update({"id": "id + 1000"}, where="id % 2 = 0")
    filled.check(calls=0)
    filled.history.open().optimize.compact_files()
    filled.history.open().update({"id": "id + 1000", "a": "78"}, where="id = 5")
    filled.check(calls=1)
    filled.history.open().delete("id = 7")
    filled.check(calls=0)
    # In parts, of which one unit has two of the same fragment.
    filled.history.open().update({"id": "id + 1"}, where="true")
    filled.history.open().optimize.compact_files()
    filled.history.open().update({"a": "79"}, where="a = 77")
    filled.check(calls=3, source_task_size=10)


def test_rows_that_failed_are_tried_again_by_the_next_refresh(tmp_path: Path) -> None:
    good = tmp_path / "good"

    def compute(a: int, x: str) -> str:
        if a == 2 and not good.exists():
            raise ValueError("not yet")
        return f"{a}/{x}"

    filled = Filled(tmp_path, compute, on_error={"action": "skip"})
    attempt = HeldAttempt()
    done = filled.view.refresh(attempt)
    bad = [id for id, row in filled.expected().items() if row[1] == 2]
    assert done.rows_failed == len(bad) == len(attempt.failed) > 0
    assert {row.row_id for row in attempt.failed} == set(bad)
    assert {id for id, row in filled.view.rows().items() if row[2] is None} == set(bad)
    filled.take_calls()
    good.touch()
    filled.check(calls=len(bad))
    filled.check(calls=0)
    assert not list((tmp_path / "view" / "_refresh").glob("*"))


def test_a_row_that_failed_is_tried_again_when_only_other_columns_changed(tmp_path: Path) -> None:
    good = tmp_path / "good"

    def compute(a: int, x: str) -> str:
        if a == 2 and not good.exists():
            raise ValueError("not yet")
        return f"{a}/{x}"

    filled = Filled(tmp_path, compute, on_error={"action": "skip"})
    failed = filled.view.refresh().rows_failed
    filled.take_calls()
    filled.history.open().update({"id": "id + 1000"}, where="true")
    assert filled.view.refresh().rows_failed == failed > 0
    assert filled.take_calls() == failed
    good.touch()
    filled.check(calls=failed)


def test_calls_of_an_attempt_that_died_are_counted(tmp_path: Path) -> None:
    filled = Filled(tmp_path)

    def die() -> None:
        raise KeyboardInterrupt

    attempt = HeldAttempt(on_fence=die)
    with pytest.raises(KeyboardInterrupt):
        filled.view.refresh(attempt)
    calls = filled.take_calls()
    done = filled.view.refresh(HeldAttempt(job=attempt.job, number=2))
    assert (done.function_calls, filled.take_calls()) == (calls, 0)
    assert filled.view.rows() == filled.expected()


@pytest.mark.parametrize("harm", ["removed", "damaged", "cut"])
def test_without_the_list_of_failed_rows_everything_is_computed(tmp_path: Path, harm: str) -> None:
    good = tmp_path / "good"

    def compute(a: int, x: str) -> str:
        if a == 2 and not good.exists():
            raise ValueError("not yet")
        return f"{a}/{x}"

    filled = Filled(tmp_path, compute, on_error={"action": "skip"})
    filled.view.refresh()
    (listed,) = (tmp_path / "view" / "_refresh").glob("*")
    if harm == "removed":
        listed.unlink()
    else:
        listed.write_bytes(b"x" if harm == "damaged" else make_row_set([]).encode())
    filled.take_calls()
    good.touch()
    assert (filled.view.explain()["mode"], "failed" in filled.view.explain()["reason"]) == (
        "full",
        True,
    )
    with pytest.raises(InvalidRequest, match="cannot be refreshed incrementally"):
        filled.view.refresh(mode="incremental")
    filled.check(calls=len(filled.expected()))


def test_a_function_that_fails_ends_the_refresh_and_leaves_nothing(tmp_path: Path) -> None:
    def compute(a: int, x: str) -> str:
        raise ValueError("never")

    filled = Filled(tmp_path, compute)
    attempt = HeldAttempt()
    with pytest.raises(FunctionFailed, match="never"):
        filled.view.refresh(attempt)
    assert filled.view.open().version == 1
    sweep_refresh(filled.view.spec(), filled.view.catalog, attempt.job, attempt.number)
    assert not filled.view.loose_files()


def two_functions(folder: Path, first: dict[str, Any], second: dict[str, Any]) -> LocalView:
    """A view with two columns; the functions of both fail on rows with a = 2."""
    SourceHistory(folder / "source", 3)
    (folder / "view").mkdir()

    def compute(name: str, a: int) -> str:
        if a == 2:
            raise ValueError("not two")
        return f"{name} {a}"

    functions = [
        store(
            folder / "view",
            folder / f"calls-{name}",
            partial(compute, name),
            "1",
            inputs=("a",),
            outputs=(name,),
            name=f"make_{name}",
            on_error=on_error,
        )
        for name, on_error in (("one", first), ("two", second))
    ]
    kinds = {"a": pa.int64(), "one": pa.string(), "two": pa.string()}
    definition = define({"a": "a"}, kinds, ("a",), functions=functions)
    return LocalView(folder, definition).create()


SKIP = {"action": "skip"}


@pytest.mark.parametrize(
    ("first", "second", "blamed"),
    [
        ({}, SKIP, "function make_one .* at row id"),
        (SKIP, {}, "function make_two .* at row id"),
        (SKIP, SKIP | {"max_failed_rows": 1}, "function make_two .* more than max_failed_rows"),
    ],
)
def test_each_function_of_a_view_fails_by_its_own_rules(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], blamed: str
) -> None:
    view = two_functions(tmp_path, first, second)
    with pytest.raises(FunctionFailed, match=blamed):
        view.refresh()


def test_a_row_that_two_functions_fail_on_is_told_for_each(tmp_path: Path) -> None:
    view = two_functions(tmp_path, SKIP, SKIP)
    attempt = HeldAttempt()
    done = view.refresh(attempt)
    bad = {id for id, row in view.rows().items() if row[0] == 2}
    assert done.rows_failed == attempt.told["rows_failed"] == len(bad) > 0
    assert sorted((e.column, e.row_id) for e in attempt.failed) == sorted(
        (column, id) for column in ("one", "two") for id in bad
    )
    assert {row for row in view.rows().values() if row[0] in (1, 2)} == {
        (1, "one 1", "two 1"),
        (2, None, None),
    }


def test_a_canceled_function_stops_and_leaves_what_it_made_to_the_next_job(tmp_path: Path) -> None:
    def compute(a: int, x: str) -> str:
        time.sleep(0.02)
        return f"{a}/{x}"

    filled = Filled(tmp_path, compute, batch_size=1)

    def cancel() -> None:
        if filled.log.exists():
            raise JobCanceled

    attempt = HeldAttempt(on_check=cancel)
    with pytest.raises(JobCanceled):
        filled.view.refresh(attempt)
    made = filled.take_calls()
    assert 0 < made < len(filled.expected())
    assert filled.view.open().version == 1
    sweep_refresh(filled.view.spec(), filled.view.catalog, attempt.job, attempt.number)
    filled.check(calls=len(filled.expected()) - made)
    assert not filled.view.loose_files()
