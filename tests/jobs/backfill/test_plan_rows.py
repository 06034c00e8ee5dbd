"""The plan of a backfill by a function: which rows are computed, and why."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    UpToDate,
    Watermark,
    fragment_key,
)
from penstock.jobs.backfill.plan_rows import FragmentRows, RowSnapshot, plan_rows
from penstock.jobs.backfill.row_states import (
    FAILED,
    FOREIGN_VALUE,
    FRESH,
    FUNCTION_CHANGED,
    INPUTS_CHANGED,
    NEVER_FILLED,
    unpack_codes,
)
from penstock.jobs.engine.checkpoints import covers
from penstock.jobs.engine.fragment_work import file_name
from penstock.lance.diff.masks import pack, unpack
from penstock.model.fragments import FragmentState

PLAIN = BackfillOptions(function="1")
JOB = "0f8fad5b-d9cb-469f-a165-70867728950e"
STALE = (NEVER_FILLED, INPUTS_CHANGED, FUNCTION_CHANGED, FOREIGN_VALUE, FAILED)


def state(id: int, rows: int = 4, dead: int = 0) -> FragmentState:
    files = (f"in-{id}:1",), (f"some-{id}.lance",), ()
    return FragmentState(id, rows, rows - dead, rows - dead, *files, f"d{id}" if dead else "")


def rows(id: int, codes: Any, live: Any = None, selected: Any = None) -> FragmentRows:
    count = len(live or selected or (codes if isinstance(codes, list) else [0] * 4))
    dead = 0 if live is None else count - sum(live)
    return FragmentRows(
        state(id, count, dead),
        codes if isinstance(codes, int) else np.array(codes, np.uint8),
        None if live is None else np.array(live, bool),
        None if selected is None else np.array(selected, bool),
    )


def plan(*fragments: FragmentRows, options: BackfillOptions = PLAIN) -> UpToDate | Fill:
    return plan_rows(RowSnapshot(7, fragments, Watermark(5)), options)


def masks(found: UpToDate | Fill) -> list[tuple[list[int] | None, list[int] | None]]:
    assert isinstance(found, Fill)

    def show(packed: bytes | None, count: int) -> list[int] | None:
        return None if packed is None else np.flatnonzero(unpack(packed, count)).tolist()

    return [(show(w.need, w.physical_rows), show(w.left, w.physical_rows)) for w in found.work]


def test_fresh_fragments_cost_nothing() -> None:
    found = plan(rows(0, FRESH), rows(1, [FRESH] * 4))
    assert isinstance(found, UpToDate)
    assert (found.function_calls, found.rows_left) == (0, 0)
    assert "present inputs" in found.reason


def test_only_stale_rows_are_computed_and_counted_by_reason() -> None:
    found = plan(rows(0, [FRESH, NEVER_FILLED, INPUTS_CHANGED, FRESH]), rows(1, FUNCTION_CHANGED))
    assert masks(found) == [([1, 2], None), (None, None)]
    assert found.calls_by_reason == {
        "never_filled": 1,
        "inputs_changed": 1,
        "function_changed": 4,
        "foreign_value": 0,
        "failed": 0,
        "forced": 0,
    }
    assert found.mode == "incremental"


def test_rows_that_are_not_asked_for_are_left() -> None:
    found = plan(rows(0, NEVER_FILLED, selected=[1, 0, 1, 0]), rows(1, FRESH))
    assert masks(found) == [([0, 2], [1, 3])]
    assert (found.function_calls, found.rows_left) == (2, 2)


def test_the_work_says_why_rows_are_left() -> None:
    codes = [FAILED, FUNCTION_CHANGED, FRESH, NEVER_FILLED]
    found = plan(rows(0, codes, selected=[0, 0, 0, 1]))
    assert isinstance(found, Fill)
    told = unpack_codes(found.work[0].reasons or b"", 4)
    assert told.tolist() == codes
    assert found.counts is not None
    assert found.counts.by_state == {"fresh": 1, "stale": 1, "unfilled": 1, "failed": 1}


def test_what_was_not_looked_at_is_not_counted() -> None:
    snapshot = RowSnapshot(7, (rows(0, NEVER_FILLED),), is_known=False)
    told = plan_rows(snapshot, structs.replace(PLAIN, force=True)).to_json()
    assert (told["rows_by_state"], told["stale_by_reason"]) == (None, None)


def test_deleted_rows_are_neither_computed_nor_left() -> None:
    found = plan(rows(0, NEVER_FILLED, live=[1, 1, 0, 0], selected=[1, 0, 1, 0]))
    assert masks(found) == [([0], [1])]
    assert isinstance(found, Fill)
    assert found.work[0].dead == pack(np.array([0, 0, 1, 1], bool))


def test_a_fragment_counts_only_when_it_has_something_to_compute() -> None:
    first = structs.replace(PLAIN, num_frags=1)
    found = plan(
        rows(0, NEVER_FILLED, selected=[0, 0, 0, 0]),
        rows(1, NEVER_FILLED),
        rows(2, NEVER_FILLED),
        options=first,
    )
    assert isinstance(found, Fill)
    assert [work.id for work in found.work] == [1]
    assert found.rows_left == 8


def test_force_takes_fresh_rows_but_not_what_the_same_job_did() -> None:
    force = structs.replace(PLAIN, force=True, job=JOB)
    mine = rows(0, FRESH)
    name = file_name(fragment_key(mine.state, force), JOB, 1, "a1")
    done = FragmentRows(structs.replace(mine.state, target_files=(name,)), FRESH)
    found = plan(done, rows(1, FRESH), options=force)
    assert isinstance(found, Fill)
    assert [work.id for work in found.work] == [1]
    assert (found.calls_by_reason or {})["forced"] == 4


def test_explain_tells_calls_by_reason() -> None:
    told = plan(rows(0, NEVER_FILLED)).to_json()
    assert (told["mode"], told["function_calls"], told["rows_left"]) == ("full", 4, 0)
    assert told["calls_by_reason"]["never_filled"] == 4


def test_where_is_no_part_of_a_functions_key() -> None:
    some = structs.replace(PLAIN, where="a > 1")
    assert fragment_key(state(0), some) == fragment_key(state(0), PLAIN)


ROW = st.tuples(st.sampled_from([FRESH, *STALE]), st.booleans(), st.booleans())


@settings(deadline=None)
@given(
    st.lists(st.lists(ROW, min_size=1, max_size=9), max_size=5),
    st.none() | st.integers(1, 3),
    st.booleans(),
)
def test_every_row_is_computed_left_or_fresh(
    table: list[list[tuple[int, bool, bool]]], num_frags: int | None, force: bool
) -> None:
    options = structs.replace(PLAIN, num_frags=num_frags, force=force)
    fragments = []
    for id, given_rows in enumerate(table):
        codes, live, selected = (list(column) for column in zip(*given_rows, strict=True))
        fragments.append(rows(id, codes, live, selected))
    found = plan(*fragments, options=options)
    alive = [(id, n, *row) for id, f in enumerate(table) for n, row in enumerate(f) if row[1]]
    wanted = {(id, n) for id, n, code, _, chosen in alive if chosen and (force or code != FRESH)}
    stale = {(id, n) for id, n, code, *_ in alive if code != FRESH}
    taken = sorted({id for id, _ in wanted})[:num_frags]
    computed = {(id, n) for id, n in wanted if id in taken}
    assert found.function_calls == len(computed)
    assert found.rows_left == len(stale - computed)
    assert sum((found.calls_by_reason or {}).values()) == len(computed)
    assert found.counts is not None
    assert sum(found.counts.by_state.values()) == len(alive)
    assert found.counts.not_fresh == len(stale)
    if isinstance(found, Fill):
        for work, (need, left) in zip(found.work, masks(found), strict=True):
            of = {n for id, n in computed if id == work.id}
            everything = {n for id, n, *_ in alive if id == work.id}
            assert everything == of if need is None else set(need) == of
            assert set(left or ()) == {n for id, n in stale - computed if id == work.id}


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=9))
def test_a_file_serves_when_it_has_every_value_that_is_wanted(
    cases: list[tuple[bool, ...]],
) -> None:
    made_need, made_live, need, live = (np.array(column) for column in zip(*cases, strict=True))
    made = plan(rows(0, NEVER_FILLED, made_live.tolist(), made_need.tolist()))
    wanted = plan(rows(0, NEVER_FILLED, live.tolist(), need.tolist()))
    if isinstance(made, Fill) and isinstance(wanted, Fill):
        has_value = made_need & made_live
        lacking = live & ((need & ~has_value) | (~need & ~made_live) | ~made_live)
        assert covers(made.work[0], wanted.work[0]) == (not lacking.any())
