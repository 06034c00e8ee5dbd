"""Columns whose names Lance cannot work with: refused when they are new, repaired when not."""

from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import penstock
from penstock.errors import ColumnNotFound, InvalidRequest
from penstock.lance.errors import find_lasting

ODD = pa.table({"id": [1, 2], "a`b": ["x", "y"]})


def test_a_new_column_has_no_back_quote_in_its_name(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    makes: list[Callable[[], object]] = [
        lambda: lake.create_table(f"{space}.t", ODD),
        lambda: table.rename_column("text", "a`b"),
        lambda: table.add_column("a`b", computed="id + 1"),
        lambda: lake.create_view(f"{space}.v", "SELECT id AS `a``b` FROM docs"),
    ]
    for make in makes:
        with pytest.raises(InvalidRequest, match=r"'a`b' holds a back-quote"):
            make()
    assert table.schema().names == ["id", "text"]


@pytest.mark.parametrize("path", ["a`b", "`a``b`"])
def test_a_column_that_came_with_a_back_quote_is_renamed(
    lake: penstock.Lake, space: str, path: str
) -> None:
    client = lake.namespace_client()
    lance.write_dataset(ODD, mode="create", namespace_client=client, table_id=[space, "t"])
    table = lake.table(f"{space}.t")
    assert table.select("id").to_list() == [{"id": 1}, {"id": 2}]
    table.rename_column("id", "key").rename_column(path, "ab")
    assert table.to_list() == [{"key": 1, "ab": "x"}, {"key": 2, "ab": "y"}]


def test_what_lance_refuses_for_good_is_not_taken_for_passing(tmp_path: Path) -> None:
    dataset = lance.write_dataset(ODD, tmp_path / "t")
    with pytest.raises(ValueError, match="No field named") as raised:
        dataset.to_table(columns=["a`b"])
    found = find_lasting(raised.value)
    assert isinstance(found, ColumnNotFound)
    assert "/rust/" in str(raised.value)
    assert "/rust/" not in found.message
    assert find_lasting(ValueError("No field named a")) is None
    assert find_lasting(OSError("LanceError(IO): timed out, /x/rust/lance/src/a.rs:1:2")) is None


def test_a_key_that_lance_cannot_merge_by_is_refused_by_its_name(
    lake: penstock.Lake, space: str
) -> None:
    table = lake.create_table(f"{space}.t", {'a"b': [1], "id": [1]})
    with pytest.raises(InvalidRequest, match="double quote"):
        table.merge({'a"b': [1], "id": [5]}, on='a"b')
