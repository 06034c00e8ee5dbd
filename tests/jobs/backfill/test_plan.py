"""The plan of a backfill: what is computed, why, and how it is divided."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    Snapshot,
    UpToDate,
    Watermark,
    fragment_key,
    plan_backfill,
    plan_tasks,
)
from penstock.jobs.engine.fragment_work import file_name
from penstock.jobs.specs import BackfillSpec
from penstock.model.fragments import FragmentState

JOB = "0f8fad5b-d9cb-469f-a165-70867728950e"
PLAIN = BackfillOptions(expression="length(text)")


def fragment(
    id: int, *, rows: int = 100, matching: int | None = None, **given: Any
) -> FragmentState:
    files = {"input_files": (f"in-{id}:1",), "target_files": (), "other_files": (f"in-{id}:0,1",)}
    taken = rows if matching is None else matching
    return FragmentState(id, rows, rows, taken, **{**files, **given})


def filled(state: FragmentState, options: BackfillOptions = PLAIN, job: str = JOB) -> FragmentState:
    """The same fragment after a backfill with these options."""
    name = file_name(fragment_key(state, options), job, 1, "a1")
    return FragmentState(**{**_fields(state), "target_files": (name,)})


def _fields(state: FragmentState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def plan(*fragments: FragmentState, options: BackfillOptions = PLAIN) -> UpToDate | Fill:
    return plan_backfill(Snapshot(7, "len", fragments, Watermark(5)), options)


def taken(found: UpToDate | Fill) -> list[int]:
    return [work.id for work in found.work] if isinstance(found, Fill) else []


def test_a_new_column_is_filled_in_whole() -> None:
    found = plan(fragment(0), fragment(1))
    assert (found.mode, found.rows, found.function_calls, found.fragments) == ("full", 200, 200, 2)
    assert "never filled" in found.reason


def test_rows_are_what_their_whole_fragment_is() -> None:
    some = BackfillOptions(expression="length(text)", where="id > 1")
    changed = FragmentState(**{**_fields(filled(fragment(1))), "input_files": ("in-9:1",)})
    partly = filled(fragment(2), some)
    found = plan(filled(fragment(0)), changed, partly, fragment(3, rows=7), options=some)
    assert found.to_json()["rows_by_state"] == {
        "fresh": 100,
        "stale": 200,
        "unfilled": 7,
        "failed": 0,
    }
    assert found.to_json()["stale_by_reason"] is None


def test_what_was_computed_from_the_same_files_is_left_alone() -> None:
    found = plan(filled(fragment(0)), filled(fragment(1)))
    assert isinstance(found, UpToDate)
    assert (found.mode, found.rows, found.fragments) == ("incremental", 0, 0)


def test_a_fragment_whose_inputs_changed_is_computed_again() -> None:
    changed = FragmentState(**{**_fields(filled(fragment(1))), "input_files": ("in-9:1",)})
    found = plan(filled(fragment(0)), changed)
    assert (taken(found), found.mode) == ([1], "incremental")
    assert "since version 5" in found.reason


def test_another_expression_computes_everything_again() -> None:
    found = plan(filled(fragment(0)), options=BackfillOptions(expression="upper(text)"))
    assert taken(found) == [0]


def test_values_that_somebody_else_wrote_do_not_count_as_filled() -> None:
    assert taken(plan(fragment(0, target_files=("b0a1.lance",)))) == [0]


def test_where_leaves_out_fragments_without_a_match() -> None:
    some = BackfillOptions(expression="length(text)", where="a > 1")
    found = plan(fragment(0, matching=0), fragment(1, matching=30), options=some)
    assert (taken(found), found.rows) == ([1], 30)


def test_where_never_computes_what_is_fresh() -> None:
    some = BackfillOptions(expression="length(text)", where="a > 1")
    assert taken(plan(filled(fragment(0)), options=some)) == []
    assert taken(plan(filled(fragment(0), some), options=some)) == []


def test_what_was_filled_in_part_is_completed_without_where() -> None:
    some = BackfillOptions(expression="length(text)", where="a > 1")
    assert taken(plan(filled(fragment(0), some))) == [0]


def test_num_frags_takes_the_first_that_need_work() -> None:
    first = BackfillOptions(expression="length(text)", num_frags=1)
    found = plan(filled(fragment(0)), fragment(1), fragment(2), options=first)
    assert taken(found) == [1]
    assert "the first 1" in found.reason


def test_force_computes_again_but_not_what_the_same_job_has_done() -> None:
    force = BackfillOptions(expression="length(text)", force=True, job=JOB)
    other = "11111111-2222-3333-4444-555555555555"
    assert taken(plan(filled(fragment(0), job=other), options=force)) == [0]
    assert taken(plan(filled(fragment(0), force), options=force)) == []


def test_a_table_without_rows_needs_nothing() -> None:
    assert plan().reason == "the table has no rows"


def test_explain_prints_the_plan() -> None:
    assert plan(fragment(0)).to_json() == {
        "mode": "full",
        "reason": "the column was never filled in any of 1 fragments",
        "rows_to_insert": 0,
        "rows_to_update": 100,
        "rows_to_delete": 0,
        "function_calls": 100,
        "fragments": 1,
        "estimated_seconds": None,
        "rows_by_state": {"fresh": 0, "stale": 0, "unfilled": 100, "failed": 0},
        "stale_by_reason": None,
    }


def test_options_are_read_from_a_spec_with_other_keys() -> None:
    spec = {
        "table": ["n", "t"],
        "column": "c",
        "inputs": ["a"],
        "expression": "a + 1",
        "where": None,
        "num_frags": 3,
        "unknown": "of no interest here",
    }
    wanted = convert(spec, BackfillSpec).to_options(JOB)
    assert wanted == BackfillOptions(expression="a + 1", num_frags=3, job=JOB)


@given(
    sizes=st.lists(st.integers(1, 10_000), min_size=1, max_size=40),
    task_size=st.none() | st.integers(1, 5_000),
    concurrency=st.none() | st.integers(1, 8),
    slots=st.integers(1, 8),
)
def test_tasks_have_every_fragment_once_and_keep_the_bounds(
    sizes: list[int], task_size: int | None, concurrency: int | None, slots: int
) -> None:
    options = BackfillOptions(expression="a", task_size=task_size, concurrency=concurrency)
    found = plan(*(fragment(n, rows=size) for n, size in enumerate(sizes)), options=options)
    assert isinstance(found, Fill)
    tasks = plan_tasks(found.work, options, slots)
    assert sorted(id for task in tasks for id in task) == list(range(len(sizes)))
    assert all(tasks)
    assert len(tasks) <= (concurrency or len(sizes))
    if task_size is None and concurrency is None:
        assert len(tasks) <= slots
