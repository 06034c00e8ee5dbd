"""A backfill fills the column that it was requested for, whatever is called like it by then."""

from pathlib import Path
from typing import Any

import pytest

from penstock.errors import ColumnNotFound
from penstock.jobs.backfill.run import run_backfill
from tests.harness.jobs.function_tables import FunctionTable, bound_field, make_table
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.jobs.local_engine import LOCAL_ENGINE

OTHER = "f" * 32


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    return make_table(tmp_path)


def rename(table: FunctionTable, *pairs: tuple[str, str]) -> None:
    for old, new in pairs:
        change: Any = {"path": old, "name": new}
        table.open().alter_columns(change)


def test_a_column_that_was_dropped_and_added_again_is_another_one(table: FunctionTable) -> None:
    table.open().drop_columns(["value"])
    table.open().add_columns(bound_field("value", table.function, OTHER))
    with pytest.raises(ColumnNotFound, match="value was dropped or declared anew"):
        table.fill()
    assert set(table.values().values()) == {None}
    assert table.take_calls() == []


def test_a_column_that_is_declared_anew_meanwhile_gets_no_file(table: FunctionTable) -> None:
    def replace() -> None:
        table.open().drop_columns(["value"])
        table.open().add_columns(bound_field("value", table.function, OTHER))

    with pytest.raises(ColumnNotFound):
        table.fill(HeldAttempt(on_fence=once(replace)))
    assert set(table.values().values()) == {None}


def test_files_of_another_binding_are_not_fresh(table: FunctionTable) -> None:
    table.fill()
    table.open().update_field_metadata({"value": {"penstock.binding": OTHER}})
    assert table.explain(binding=OTHER, watermarks=[])["function_calls"] == 40


def test_a_column_keeps_being_filled_under_another_name(table: FunctionTable) -> None:
    done = table.fill(HeldAttempt(on_fence=once(lambda: rename(table, ("value", "renamed")))))
    assert done.watermark is not None
    assert done.watermark.columns == ("renamed",)
    assert None not in table.open().to_table(columns=["renamed"])["renamed"].to_pylist()
    assert len(table.take_calls()) == 40
    assert table.explain()["function_calls"] == 0


def test_columns_that_swap_their_names_keep_their_own_values(table: FunctionTable) -> None:
    table.open().add_columns(bound_field("second", table.function, OTHER))
    swap = once(lambda: rename(table, ("value", "third"), ("second", "value"), ("third", "second")))
    table.fill(HeldAttempt(on_fence=swap))
    rows = table.open().to_table(columns=["value", "second"])
    assert set(rows["value"].to_pylist()) == {None}
    assert None not in rows["second"].to_pylist()
    assert table.explain(binding=OTHER, watermarks=[])["function_calls"] == 40


def test_a_function_of_another_name_is_another_one(table: FunctionTable) -> None:
    table.fill()
    table.take_calls()
    table.use(lambda text, number: f"other {text}{number}", "1", name="g")
    assert table.explain()["calls_by_reason"]["function_changed"] == 40
    table.fill()
    assert len(table.take_calls()) == 40
    table.use(lambda text, number: "unseen", "1", name="g")
    run_backfill(table.spec(), table.catalog, lambda: LOCAL_ENGINE, HeldAttempt())
    assert table.take_calls() == []
