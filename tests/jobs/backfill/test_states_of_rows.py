"""Fresh, stale, unfilled and failed rows: what a job leaves of each, and what remembers it."""

from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.backfill.run import BackfillResult
from tests.harness.jobs.filled_tables import some_rows
from tests.harness.jobs.function_tables import FunctionTable, join, make_table
from tests.harness.jobs.held_attempt import HeldAttempt


def fail_three(text: str, number: int) -> str:
    if number == 3:
        raise ValueError("no 3")
    return join(text, number)


@pytest.fixture
def table(tmp_path: Path) -> FunctionTable:
    """Ten rows in two fragments, of which row 3 fails in version 1 of the function."""
    return make_table(tmp_path, fail_three, rows=10, fragments=2, on_error={"action": "skip"})


def use_second(table: FunctionTable) -> None:
    table.use(lambda text, number: f"2:{text}:{number}", "2", on_error={"action": "skip"})


def fill_errors(table: FunctionTable) -> BackfillResult:
    return table.fill(HeldAttempt(ledger=frozenset([3])), errors_only=True)


def compact(table: FunctionTable) -> None:
    table.open().optimize.compact_files(target_rows_per_fragment=1000)


def states(told: dict[str, Any]) -> tuple[int, ...]:
    """Fresh, stale, unfilled, failed."""
    return tuple(told["rows_by_state"].values())


def explained(table: FunctionTable, branch: str = "") -> tuple[tuple[int, ...], dict[str, int]]:
    """The states, and the reasons for calls, as one plan tells both."""
    told = table.explain(branch)
    why = {reason: count for reason, count in told["calls_by_reason"].items() if count}
    assert sum(states(told)) == table.open(branch).count_rows()
    assert sum(why.values()) == told["function_calls"] == sum(states(told)[1:])
    stale = {reason: count for reason, count in told["stale_by_reason"].items() if count}
    assert stale.items() <= why.items()
    return states(told), why


def test_a_row_that_failed_is_neither_fresh_nor_unfilled(table: FunctionTable) -> None:
    assert explained(table) == ((0, 0, 10, 0), {"never_filled": 10})
    done = table.fill()
    assert done.rows_by_state == {"fresh": 9, "stale": 0, "unfilled": 0, "failed": 1}
    assert (done.rows_failed, done.rows_left) == (1, 0)
    assert explained(table) == ((9, 0, 0, 1), {"failed": 1})


@pytest.mark.parametrize("then", ["nothing", "compact"])
def test_errors_only_leaves_the_values_of_the_old_version_stale(
    table: FunctionTable, then: str
) -> None:
    table.fill()
    use_second(table)
    assert explained(table) == ((0, 9, 0, 1), {"function_changed": 9, "failed": 1})
    done = fill_errors(table)
    assert done.rows_by_state == {"fresh": 1, "stale": 9, "unfilled": 0, "failed": 0}
    assert (done.rows_failed, done.rows_left) == (0, 9)
    if then == "compact":
        compact(table)
    assert explained(table) == ((1, 9, 0, 0), {"function_changed": 9})


def test_where_leaves_the_others_what_they_are(table: FunctionTable) -> None:
    table.fill(where="id < 4")
    assert explained(table) == ((3, 0, 6, 1), {"never_filled": 6, "failed": 1})
    use_second(table)
    table.fill(where="id IN (0, 9)")
    expected = {"function_changed": 2, "never_filled": 5, "failed": 1}
    assert explained(table) == ((2, 2, 5, 1), expected)


def test_num_frags_leaves_the_others_what_they_are(table: FunctionTable) -> None:
    table.fill()
    use_second(table)
    table.fill(num_frags=1)
    assert explained(table) == ((5, 5, 0, 0), {"function_changed": 5})


def test_force_counts_what_it_left(table: FunctionTable) -> None:
    table.fill()
    assert table.explain(force=True)["calls_by_reason"]["forced"] == 10
    done = table.fill(force=True)
    assert done.rows_by_state == {"fresh": 9, "stale": 0, "unfilled": 0, "failed": 1}


def test_every_later_version_knows_what_an_earlier_one_failed_on(table: FunctionTable) -> None:
    table.fill()
    for version in ("2", "3", "4", "5"):
        table.use(fail_three, version, on_error={"action": "skip"})
        table.fill(where="id = 9")
        expected = {"function_changed": 8, "failed": 1}
        assert explained(table) == ((1, 8, 0, 1), expected)


def test_deleted_rows_are_in_no_count(table: FunctionTable) -> None:
    table.fill()
    use_second(table)
    fill_errors(table)
    table.open().delete("id IN (3, 4, 9)")
    assert explained(table) == ((0, 7, 0, 0), {"function_changed": 7})


def test_foreign_values_are_told_apart_in_every_version(table: FunctionTable) -> None:
    table.fill()
    table.open().update({"value": "'mine'"}, where="id IN (0, 3)")
    assert explained(table) == ((8, 2, 0, 0), {"foreign_value": 2})
    table.fill(where="id = 0")
    use_second(table)
    assert explained(table)[1] == {"function_changed": 9, "foreign_value": 1}
    table.open().update({"number": "5"}, where="id = 1")
    table.fill(where="id = 9")
    assert explained(table)[1] == {"function_changed": 8, "foreign_value": 1}


def test_inputs_that_changed_stay_the_reason(table: FunctionTable) -> None:
    table.fill()
    table.open().update({"number": "5"}, where="id < 2")
    table.open().insert(some_rows(20, 2))
    table.fill(where="id = 0")
    compact(table)
    expected = {"inputs_changed": 1, "never_filled": 2, "failed": 1}
    assert explained(table) == ((8, 1, 2, 1), expected)


def test_a_restore_brings_the_states_back(table: FunctionTable) -> None:
    table.fill(where="id < 5")
    version, before = table.open().version, explained(table)
    table.fill()
    earlier: Any = table.open().checkout_version(version)
    earlier.restore()
    assert explained(table) == before == ((4, 0, 5, 1), {"never_filled": 5, "failed": 1})


def test_a_branch_has_the_states_of_its_start(table: FunctionTable) -> None:
    table.fill()
    use_second(table)
    fill_errors(table)
    table.branch("dev")
    table.fill()
    assert explained(table, "dev") == ((1, 9, 0, 0), {"function_changed": 9})
    assert explained(table) == ((10, 0, 0, 0), {})


def test_files_tell_the_states_without_stable_row_ids(tmp_path: Path) -> None:
    table = make_table(tmp_path, rows=10, fragments=2, stable=False)
    table.fill(where="id < 8")
    assert explained(table) == ((8, 0, 2, 0), {"never_filled": 2})
    use_second(table)
    assert explained(table) == ((0, 8, 2, 0), {"function_changed": 8, "never_filled": 2})
