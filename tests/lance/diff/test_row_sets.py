"""Sets of row ids say of each id what a set of Python says."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InvalidTableState
from penstock.jobs.backfill.left_rows import LeftRows, decode_left_rows
from penstock.jobs.backfill.row_states import FAILED, FRESH, FUNCTION_CHANGED, REASONS
from penstock.lance.diff.row_sets import decode_row_set, make_row_set, sort_distinct

IDS = st.integers(0, 60) | st.integers(2**40, 2**40 + 5)


@given(st.lists(st.lists(IDS)), st.lists(IDS))
def test_a_set_knows_its_ids(parts: list[list[int]], asked: list[int]) -> None:
    expected = {id for part in parts for id in part}
    found = make_row_set(np.array(part, np.int64) for part in parts)
    assert found.contains(np.array(sorted(expected), np.int64)).all()
    assert len(found) == len(expected)
    again = decode_row_set(found.encode())
    answers = again.contains(np.array(asked, np.int64)).tolist()
    assert answers == [id in expected for id in asked]


def test_neighbours_cost_next_to_nothing() -> None:
    found = make_row_set([np.arange(1_000_000), np.arange(1_000_000, 3_000_000)])
    assert len(found) == 3_000_000
    assert len(found.encode()) < 100


def test_a_file_that_was_compressed_harder_is_read() -> None:
    # Three runs, compressed at level 6.
    file = "5053524f5753310a789c636080001628fde33f10006966289f114a3341690095c204ff"
    found = decode_row_set(bytes.fromhex(file))
    assert found.starts.tolist() == [0, 7, 2**40]
    assert found.ends.tolist() == [3, 8, 2**40 + 2]


def test_a_damaged_file_is_named() -> None:
    for data in (b"", b"PSROWS1\nnothing", b"other"):
        with pytest.raises(InvalidTableState, match="row ids"):
            decode_row_set(data)


@given(st.dictionaries(IDS, st.sampled_from(list(REASONS))), st.lists(IDS))
def test_rows_that_were_left_keep_their_reasons(left: dict[int, int], asked: list[int]) -> None:
    by_code = {
        code: make_row_set([np.array([id for id in left if left[id] == code], np.int64)])
        for code in REASONS
    }
    again = decode_left_rows(LeftRows(by_code).encode())
    assert len(again) == len(left)
    assert again.find(np.array(asked, np.int64)).tolist() == [left.get(id, FRESH) for id in asked]


def test_a_damaged_list_of_rows_is_named() -> None:
    rows = make_row_set([np.array([1, 5], np.int64)])
    whole = LeftRows({FAILED: rows, FUNCTION_CHANGED: rows}).encode()
    for data in (b"", rows.encode(), whole[:-1], whole[:12], whole + b"x", whole + b"\x09" * 20):
        with pytest.raises(InvalidTableState, match="row ids"):
            decode_left_rows(data)


@given(st.lists(st.lists(IDS), min_size=1))
def test_ids_are_sorted_each_once(parts: list[list[int]]) -> None:
    found = sort_distinct(*(np.array(part, np.int64) for part in parts))
    assert found.tolist() == sorted({id for part in parts for id in part})


def test_many_ids_are_sorted_as_fast_as_numpy_sorts() -> None:
    ids = np.arange(3_000_000)

    def measure(work: Callable[[], object]) -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    # numpy.unique takes fifty times as long.
    sorting = min(measure(lambda: np.sort(ids)) for _ in range(5))
    assert min(measure(lambda: sort_distinct(ids)) for _ in range(5)) < 20 * sorting + 0.1
