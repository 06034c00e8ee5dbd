"""When values are kept: as soon as it costs little, and never with much in memory."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.kept.keeper import MAX_WAITING_BYTES, Keeper
from penstock.jobs.kept.store import Store, find_parts, read_part
from penstock.lance.storage.lake import Lake

WIDE = 4 * 2**20


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(Lake(str(tmp_path)).place(str(tmp_path)), "kept-column-x-y", "job")


def work(store: Store, rows: int, width: int, seconds: float, flush_seconds: float = 60) -> int:
    """Make something of so many rows, each in so many seconds; how many of them are kept."""
    keeper = Keeper(store, flush_seconds, lambda: None)
    inputs, values = pa.array([bytes(width)]), pa.record_batch({"value": pa.array([1])})
    for row in range(rows):
        keeper.keep(np.array([row]), [inputs], values, np.zeros(1, bool), seconds)
    parts = find_parts(store.place, store.folder)
    return sum(len(read_part(store, part)) for part in parts)


def test_a_slow_function_keeps_each_batch(store: Store) -> None:
    assert work(store, rows=5, width=10, seconds=0.1) == 5


def test_many_small_parts_become_one(store: Store) -> None:
    assert work(store, rows=40, width=10, seconds=0.1) == 40
    assert len(find_parts(store.place, store.folder)) == 9


def test_wide_inputs_are_kept_before_they_fill_the_memory(store: Store) -> None:
    rows = 2 * MAX_WAITING_BYTES // WIDE
    assert work(store, rows, WIDE, seconds=0.12) > rows // 2


def test_what_is_faster_made_than_kept_is_not_kept(store: Store) -> None:
    assert work(store, 2 * MAX_WAITING_BYTES // WIDE, WIDE, seconds=0.001) == 0
    assert work(store, rows=100, width=10, seconds=1e-6) == 0


def test_whoever_asks_for_it_has_each_batch_kept(store: Store) -> None:
    assert work(store, rows=5, width=10, seconds=1e-6, flush_seconds=0) == 5
