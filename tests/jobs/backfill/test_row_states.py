"""The state of each row: what earlier versions say of it, and how that is counted."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.jobs.backfill.row_states import (
    CODES,
    FAILED,
    FOREIGN_VALUE,
    FRESH,
    FUNCTION_CHANGED,
    INPUTS_CHANGED,
    NEVER_FILLED,
    REASONS,
    UNKNOWN,
    Comparison,
    join,
    judge,
    mark_left,
    pack_codes,
    settle,
    to_counts,
    unpack_codes,
)

EVERY = np.arange(CODES, dtype=np.uint8)
YES, NO = np.ones(CODES, bool), np.zeros(CODES, bool)
CODE = st.integers(0, CODES - 1)


def test_rows_that_nobody_touched_are_what_they_were() -> None:
    assert judge(Comparison(True, EVERY, YES, YES)).tolist() == EVERY.tolist()


def test_other_inputs_make_fresh_rows_stale_and_no_others() -> None:
    found = judge(Comparison(True, EVERY, YES, NO))
    assert found[FRESH] == INPUTS_CHANGED
    assert np.delete(found, FRESH).tolist() == np.delete(EVERY, FRESH).tolist()


def test_values_of_another_function_are_its_own_whatever_their_inputs() -> None:
    for inputs in (YES, NO):
        found = judge(Comparison(False, EVERY, YES, inputs))
        assert set(found[[FRESH, INPUTS_CHANGED, FUNCTION_CHANGED]]) == {FUNCTION_CHANGED}
        kept = [UNKNOWN, NEVER_FILLED, FOREIGN_VALUE, FAILED]
        assert found[kept].tolist() == kept


@given(st.booleans())
def test_a_value_that_is_another_was_written_by_somebody_else(same_function: bool) -> None:
    found = judge(Comparison(same_function, EVERY, NO, YES))
    assert found.tolist() == [UNKNOWN] + [FOREIGN_VALUE] * (CODES - 1)


def test_what_no_version_knows_has_no_value_or_a_foreign_one() -> None:
    codes = np.full(2, UNKNOWN, np.uint8)
    assert settle(codes, np.array([True, False])).tolist() == [NEVER_FILLED, FOREIGN_VALUE]


@given(st.lists(st.tuples(CODE, CODE), min_size=1))
def test_one_version_that_knows_a_row_as_fresh_is_enough(cases: list[tuple[int, int]]) -> None:
    older, newer = (np.array(column, np.uint8) for column in zip(*cases, strict=True))
    found = join(older, newer)
    assert ((found == FRESH) == ((older == FRESH) | (newer == FRESH))).all()
    assert ((found == UNKNOWN) == ((older == UNKNOWN) & (newer == UNKNOWN))).all()


@given(st.dictionaries(st.sampled_from(list(REASONS)), st.integers(0, 9)), st.integers(0, 9))
def test_states_add_up_to_the_rows(by_code: dict[int, int], fresh: int) -> None:
    counts = to_counts(fresh + sum(by_code.values()), by_code)
    assert counts.fresh == fresh
    assert sum(counts.by_state.values()) == fresh + sum(by_code.values())
    assert sum((counts.stale_by_reason or {}).values()) == counts.stale


@given(st.lists(CODE))
def test_codes_come_back_as_they_were_packed(codes: list[int]) -> None:
    assert unpack_codes(pack_codes(np.array(codes, np.uint8)), len(codes)).tolist() == codes


def test_a_file_keeps_why_rows_were_left_and_which_failed() -> None:
    left, told = np.array([1, 1, 0, 0], bool), np.array([FUNCTION_CHANGED, 0, 0, 0], np.uint8)
    assert mark_left(left, told, [3]).tolist() == [FUNCTION_CHANGED, NEVER_FILLED, FRESH, FAILED]
