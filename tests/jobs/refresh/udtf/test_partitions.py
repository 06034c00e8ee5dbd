"""Partitions of rows by the values of a column."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.jobs.refresh.udtf.partitions import Partitioning, divide

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (
            pa.array([NAN, None, INFINITY, 1.5, -INFINITY, NAN]),
            ["NaN", "null", "Infinity", "1.5", "-Infinity", "NaN"],
        ),
        (pa.array(["", None, "null"]), ['""', "null", '"null"']),
        (pa.array(["a", None, "b", "a"]).dictionary_encode(), ['"a"', "null", '"b"', '"a"']),
    ],
)
def test_each_value_is_a_partition_of_its_own(
    tmp_path: Path, values: "pa.Array[Any]", labels: list[str]
) -> None:
    dataset = lance.write_dataset(
        pa.table({"p": values}), str(tmp_path), enable_stable_row_ids=True
    )
    found = divide(dataset, Partitioning(expression="`p`"))
    assert [found.labels[number] for number in found.numbers] == labels


@pytest.mark.parametrize("is_coded", [False, True])
def test_values_that_are_read_piece_by_piece_are_the_same_partitions(
    tmp_path: Path, is_coded: bool
) -> None:
    values = ["a", None, "b", "c", "a", "d", None, "b", "e"]
    column = pa.array(values).dictionary_encode() if is_coded else pa.array(values)
    dataset = lance.write_dataset(
        pa.table({"p": column}), str(tmp_path), max_rows_per_file=2, enable_stable_row_ids=True
    )
    found = divide(dataset, Partitioning(expression="`p`"))
    shown = ["null" if value is None else f'"{value}"' for value in values]
    assert [found.labels[number] for number in found.numbers] == shown
