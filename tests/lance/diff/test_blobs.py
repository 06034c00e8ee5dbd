"""Rows of two versions, compared field by field: blobs wherever they are, and names of any kind."""

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import blob_array, blob_field

from penstock.errors import InvalidTableState
from penstock.lance.columns.fields import get_field
from penstock.lance.diff.blobs import Side, fields_equal
from penstock.lance.diff.compare import rows_unchanged
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.samples import take_sample
from penstock.lance.read.scans import scan_expressions


@pytest.mark.parametrize("storage", ["2.1", "2.2"])
def test_blobs_inside_others_are_compared_by_their_bytes(tmp_path: Path, storage: Any) -> None:
    rows = [b"one", b"two", None, b"", b"same", b"other"]
    changed = [b"one", b"TWO", None, b"", b"same", None]
    now, then = (
        RowReader(write_nested(tmp_path / name, storage, values), [0])
        for name, values in (("now", rows), ("then", changed))
    )
    want = [True, False, True, True, True, False]
    # Lance cannot read lists of such blobs in older files.
    paths = ["s", "s.b", "l"] if storage == "2.2" else ["s", "s.b"]
    for ids in (np.array([0, 1, 2, 3, 4, 5]), np.array([5, 0, 3, 1])):
        for path in paths:
            found = rows_unchanged(now, [path], then, [path], ids, 4)
            assert found.tolist() == [want[id] for id in ids], path
            left, right = (Side(each, path, each.read(ids, [path])[0]) for each in (now, then))
            field = get_field(now.dataset, path).lance
            by_row = fields_equal(left, right, field, ids, step_bytes=1)
            assert by_row.tolist() == found.tolist(), path


def write_nested(path: Path, storage: Any, blobs: list[bytes | None]) -> lance.LanceDataset:
    values, field = pa.array(blobs, pa.large_binary()), pa.field("b", pa.large_binary())
    field = field.with_metadata({"lance-encoding:blob": "true"})
    if storage == "2.2":
        values, field = blob_array(blobs), blob_field("b")
    numbers = pa.array(range(len(blobs)), pa.int64())
    struct = pa.StructArray.from_arrays(
        [values, numbers], fields=[field, pa.field("n", pa.int64())]
    )
    columns: dict[str, Any] = {"id": numbers, "s": struct}
    if storage == "2.2":
        columns["l"] = pa.ListArray.from_arrays(pa.array(range(len(blobs) + 1), pa.int32()), struct)
    return lance.write_dataset(
        pa.table(columns), str(path), data_storage_version=storage, enable_stable_row_ids=True
    )


def test_blobs_outside_the_table_are_known_by_their_address(tmp_path: Path) -> None:
    addresses = [f"file://{tmp_path}/{name}" for name in ("x", "y")]
    for name in ("x", "y"):
        (tmp_path / name).write_bytes(name.encode() * 4)
    schema = pa.schema([blob_field("b")])
    now, then = (
        lance.write_dataset(
            pa.table([blob_array([addresses[0], address])], schema),
            str(tmp_path / f"t{n}"),
            data_storage_version="2.2",
            enable_stable_row_ids=True,
            allow_external_blob_outside_bases=True,
        )
        for n, address in enumerate(addresses)
    )
    # They need not be there any more.
    (tmp_path / "x").unlink()
    readers = RowReader(now, [0]), RowReader(then, [0])
    found = rows_unchanged(readers[0], ["b"], readers[1], ["b"], np.array([0, 1]), 16)
    assert found.tolist() == [True, False]


def linked(path: Path, shape: str, address: str) -> lance.LanceDataset:
    """A dataset whose second row has an address in the place of a blob, somewhere inside."""
    values, field = blob_array([b"own", address]), blob_field("b")
    if shape != "plain":
        values = pa.StructArray.from_arrays([values], fields=[field])
        field = pa.field("b", values.type)
    if shape == "list":
        values = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), values)
        field = pa.field("b", values.type)
    return lance.write_dataset(
        pa.table([values, pa.array([1, 2])], pa.schema([field, pa.field("n", pa.int64())])),
        str(path),
        data_storage_version="2.2",
        enable_stable_row_ids=True,
        allow_external_blob_outside_bases=True,
    )


@pytest.mark.parametrize("shape", ["plain", "struct", "list"])
def test_no_scan_fetches_a_blob_from_outside_the_table(tmp_path: Path, shape: str) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    dataset = linked(tmp_path / "t", shape, f"file://{tmp_path}/secret")
    (fragment,) = dataset.get_fragments()
    with pytest.raises(InvalidTableState, match="outside the table"):
        list(scan_expressions(dataset, fragment, {"x": "b"}))
    with pytest.raises(InvalidTableState, match="outside the table"):
        take_sample(dataset, ["b"], None, 5)
    with pytest.raises(InvalidTableState, match="outside the table"):
        RowReader(dataset, [0]).read_bytes(np.array([1]), "b")


def test_rows_beside_such_a_blob_are_read(tmp_path: Path) -> None:
    dataset = linked(tmp_path / "t", "plain", f"file://{tmp_path}/gone")
    (fragment,) = dataset.get_fragments()
    (own,) = scan_expressions(dataset, fragment, {"x": "b"}, "n = 1")
    assert own["x"].to_pylist() == [b"own"]
    (numbers,) = scan_expressions(dataset, fragment, {"x": "n"})
    assert numbers["x"].to_pylist() == [1, 2]


def test_fields_inside_others_have_any_name(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2], "s": [{"x`y": 1}, {"x`y": 2}]})
    dataset = lance.write_dataset(data, str(tmp_path / "t"), enable_stable_row_ids=True)
    (found,) = RowReader(dataset, [0]).read(np.array([1, 0]), ["s.`x``y`"])
    assert found.to_pylist() == [2, 1]
