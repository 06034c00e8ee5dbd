"""The first rows of a table, without a scan: the same that a scan finds, or left to it."""

import datetime
import decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.lance.read import query
from penstock.lance.read.first_rows import MAX_BYTES, MAX_ROWS, take_first
from penstock.lance.read.query import Query

ROWS = 20


def _columns() -> dict[str, pa.Array]:
    lists = [[1, 2], None, [], [3]] * 5
    return {
        "number": pa.array(range(ROWS), pa.int8()),
        "truth": pa.array([n % 2 == 0 for n in range(ROWS)]),
        "half": pa.array([1.5] * ROWS, pa.float16()),
        "text": pa.array([None if n % 3 == 0 else f"text {n}" for n in range(ROWS)]),
        "long text": pa.array([f"text {n}" for n in range(ROWS)], pa.large_string()),
        "bytes": pa.array([b"x" * n for n in range(ROWS)]),
        "key": pa.array([b"abcd"] * ROWS, pa.binary(4)),
        "price": pa.array([decimal.Decimal("1.23")] * ROWS, pa.decimal128(10, 2)),
        "day": pa.array([datetime.date(2020, 1, 1)] * ROWS),
        "moment": pa.array(range(ROWS), pa.timestamp("us", "UTC")),
        "while": pa.array(range(ROWS), pa.duration("ms")),
        "list": pa.array(lists, pa.list_(pa.int64())),
        "long list": pa.array(lists, pa.large_list(pa.int64())),
        "struct": pa.array([{"a": n, "b": [{"c": "x"}]} for n in range(ROWS)]),
        "vector": pa.array([[1.0, n] for n in range(ROWS)], pa.list_(pa.float32(), 2)),
        "word": pa.array(["a", "b"] * (ROWS // 2)).dictionary_encode(),
        "nothing": pa.nulls(ROWS),
    }


def _write(path: Path, table: pa.Table, **options: Any) -> lance.LanceDataset:
    return lance.write_dataset(table, path, enable_stable_row_ids=True, **options)


def _scan(dataset: lance.LanceDataset, columns: list[str] | None, offset: int, k: int) -> pa.Table:
    return dataset.scanner(columns=columns, offset=offset, limit=k).to_table()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("columns", [None, ["text", "number"], ["struct", "word", "vector"]])
@pytest.mark.parametrize(("offset", "k"), [(0, 1), (0, 20), (7, 6), (19, 1)])
def test_rows_are_those_of_a_scan_in_every_type(
    tmp_path: Path, version: str, columns: list[str] | None, offset: int, k: int
) -> None:
    table = pa.table(_columns()).replace_schema_metadata({"made": "here"})
    dataset = _write(tmp_path / "t.lance", table, data_storage_version=version)

    taken = take_first(dataset, columns, offset, k)

    assert taken is not None
    scanned = _scan(dataset, columns, offset, k)
    assert taken.schema.equals(scanned.schema, check_metadata=True)
    assert taken.equals(scanned)


@pytest.mark.parametrize(
    ("columns", "offset", "k"),
    [
        (None, 0, 0),
        (None, 0, MAX_ROWS + 1),
        (None, 15, 6),
        (None, 20, 1),
        ([], 0, 1),
        (["number", "number"], 0, 1),
        (["struct.a"], 0, 1),
        (["_rowid"], 0, 1),
        (["unknown"], 0, 1),
    ],
)
def test_other_rows_and_columns_are_left_to_a_scan(
    tmp_path: Path, columns: list[str] | None, offset: int, k: int
) -> None:
    dataset = _write(tmp_path / "t.lance", pa.table(_columns()))

    assert take_first(dataset, columns, offset, k) is None


def test_deleted_rows_are_left_to_a_scan(tmp_path: Path) -> None:
    dataset = _write(tmp_path / "t.lance", pa.table(_columns()))
    dataset.delete("number = 3")

    assert take_first(dataset, None, 0, 5) is None
    found = query.search(dataset, Query(k=5, columns=["number"]))
    assert [row["number"] for batch in found for row in batch.to_pylist()] == [0, 1, 2, 4, 5]


def test_a_column_that_is_in_no_file_yet_is_null(tmp_path: Path) -> None:
    dataset = _write(tmp_path / "t.lance", pa.table({"a": range(ROWS)}))
    dataset.add_columns(pa.schema([pa.field("b", pa.string())]))

    assert take_first(dataset, ["b"], 0, 5) is None
    found = query.search(dataset, Query(k=2))
    rows = [row for batch in found for row in batch.to_pylist()]
    assert rows == [{"a": 0, "b": None}, {"a": 1, "b": None}]


def test_columns_of_several_files_are_put_together(tmp_path: Path) -> None:
    dataset = _write(tmp_path / "t.lance", pa.table({"a": range(ROWS), "b": range(ROWS)}))
    dataset.add_columns({"c": "a + 1"})
    dataset.drop_columns(["a"])
    change: Any = {"path": "b", "name": "a", "data_type": pa.int32()}
    dataset.alter_columns(change)

    taken = take_first(dataset, None, 3, 4)

    assert taken is not None
    assert taken.equals(_scan(dataset, None, 3, 4))


def test_blobs_and_large_rows_are_left_to_a_scan(tmp_path: Path) -> None:
    blob = pa.field("v", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    values = [b"x" * 10] * ROWS
    with_blobs = pa.table([pa.array(values, pa.large_binary())], pa.schema([blob]))
    large = pa.table({"v": [bytes([n]) * (MAX_BYTES // 10) for n in range(ROWS)]})

    assert take_first(_write(tmp_path / "b.lance", with_blobs), None, 0, 5) is None
    assert take_first(_write(tmp_path / "l.lance", large), None, 0, 15) is None


def test_a_handle_knows_only_its_own_version(tmp_path: Path) -> None:
    first = _write(tmp_path / "t.lance", pa.table({"a": range(ROWS)}))
    assert take_first(first, None, 0, 1) is not None
    second = _write(tmp_path / "t.lance", pa.table({"a": range(100, 103)}), mode="overwrite")

    taken, old = take_first(second, None, 0, 2), take_first(first.checkout_version(1), None, 0, 2)

    assert taken is not None
    assert taken["a"].to_pylist() == [100, 101]
    assert old is not None
    assert old["a"].to_pylist() == [0, 1]
    assert take_first(second, None, 2, 2) is None
