"""Rows by their ids: the same rows whether few of them are looked up or all places are known."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import InvalidTableState
from penstock.lance.read.by_id import FEW, RowReader

ROWS = 20 * FEW


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Four fragments; rows 3 and 1500 moved to a fifth, and 4 and 5 were deleted."""
    path = tmp_path_factory.mktemp("rows") / "t"
    rows = pa.table({"id": np.arange(ROWS), "text": [f"text {n}" for n in range(ROWS)]})
    lance.write_dataset(rows, path, max_rows_per_file=ROWS // 4, enable_stable_row_ids=True)
    lance.dataset(path).update({"text": "'moved'"}, where="id IN (3, 1500)")
    lance.dataset(path).delete("id IN (4, 5)")
    return lance.dataset(path)


def open_reader(dataset: Any, *, knows_places: bool, fragments: range = range(5)) -> RowReader:
    reader = RowReader(dataset, fragments)
    if knows_places:
        reader.has(np.arange(ROWS))
    return reader


@pytest.mark.parametrize("knows_places", [False, True])
def test_rows_are_read_in_the_order_that_they_are_asked_for(
    dataset: Any, knows_places: bool
) -> None:
    reader = open_reader(dataset, knows_places=knows_places)
    ids, texts = reader.read(np.array([1999, 3, 6, 3, 1500]), ["id", "text"])
    assert ids.to_pylist() == [1999, 3, 6, 3, 1500]
    assert texts.to_pylist() == ["text 1999", "moved", "text 6", "moved", "moved"]


@pytest.mark.parametrize("knows_places", [False, True])
def test_rows_are_there_only_in_the_fragments_that_hold_them(
    dataset: Any, knows_places: bool
) -> None:
    old = open_reader(dataset, knows_places=knows_places, fragments=range(4))
    assert old.has(np.array([2, 3, 4, ROWS + 1, 1500, 1501])).tolist() == [
        *(True, False, False),
        *(False, False, True),
    ]
    new = open_reader(dataset, knows_places=knows_places, fragments=range(4, 5))
    assert new.has(np.array([2, 3, 1500])).tolist() == [False, True, True]


@pytest.mark.parametrize("ids", [[4], [3, 4], [ROWS + 1]])
def test_a_row_that_is_not_there_is_an_error(dataset: Any, ids: list[int]) -> None:
    with pytest.raises(InvalidTableState, match="lost some of its rows"):
        open_reader(dataset, knows_places=False).read(np.array(ids), ["text"])


def test_all_places_are_found_out_once_many_rows_were_asked_for(dataset: Any) -> None:
    reader = RowReader(dataset, range(5))
    few = np.arange(10, 10 + ROWS // FEW // 2)
    for _ in range(4):
        assert reader.has(few).all()
        assert reader.read(few, ["id"])[0].to_pylist() == few.tolist()


def test_a_table_without_stable_row_ids_has_its_addresses(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(ROWS)})
    dataset = lance.write_dataset(rows, tmp_path / "t", max_rows_per_file=ROWS // 2)
    reader = RowReader(dataset, range(2))
    ids = np.array([7, (1 << 32) + 1])
    assert reader.has(np.array([*ids, ROWS // 2])).tolist() == [True, True, False]
    assert reader.read(ids, ["id"])[0].to_pylist() == [7, ROWS // 2 + 1]


@pytest.mark.parametrize("knows_places", [False, True])
def test_no_rows_are_nowhere(dataset: Any, knows_places: bool) -> None:
    reader = open_reader(dataset, knows_places=knows_places)
    none = np.arange(0)
    assert reader.has(none).tolist() == []
    assert [found.to_pylist() for found in reader.read(none, ["id"])] == [[]]
