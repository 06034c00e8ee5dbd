"""Digests of rows: equal rows have equal ones, wherever they lie, and other rows have others."""

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.lance.diff.digests import digest_rows

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
# Values of each type that are all different.
VALUES: dict[pa.DataType, list[Any]] = {
    pa.int8(): [None, 0, 1, -1],
    pa.list_(pa.int8()): [None, [0, 0, 0, 1], [0, None], [0, 0], []],
    pa.uint64(): [None, 0, 1, 2**64 - 1],
    pa.float32(): [None, 0.0, -0.0, 1.5, float("inf")],
    pa.float64(): [None, 0.0, 1e300, float("nan")],
    pa.bool_(): [None, True, False],
    pa.string(): [None, "", "a", "b", "ab", "ä" * 50],
    pa.large_string(): [None, "", "a"],
    pa.string_view(): [None, "", "a", "long enough to lie elsewhere"],
    pa.binary(): [None, b"", b"\x00", b"\x00\x00"],
    pa.binary(3): [None, b"abc", b"abd"],
    pa.decimal128(20, 2): [None, Decimal("1.20"), Decimal("-1.20"), Decimal("12345678901234.5")],
    pa.date32(): [None, date(2020, 1, 1), date(2020, 1, 2)],
    pa.timestamp("us", "UTC"): [None, datetime(2020, 1, 1, tzinfo=UTC)],
    pa.list_(pa.int32()): [None, [], [None], [0], [1], [1, 2], [2, 1], [0, None], [None, 0]],
    pa.large_list(pa.string()): [None, [], [""], ["a", "b"], ["ab"]],
    pa.list_(pa.float32(), 2): [None, [0.0, 1.0], [1.0, 0.0], [None, 1.0]],
    STRUCT: [None, {"a": None, "b": None}, {"a": 1, "b": []}, {"a": 1, "b": ["x"]}],
    pa.list_(STRUCT): [None, [], [{"a": 1, "b": []}], [{"a": 1, "b": None}]],
    pa.map_(pa.string(), pa.int32()): [None, [], [("a", 1)], [("a", 2)]],
    pa.dictionary(pa.int8(), pa.string()): [None, "a", "b"],
    pa.null(): [None],
}


def digest(*columns: Any) -> list[int]:
    found: list[int] = digest_rows(columns, len(columns[0])).tolist()
    return found


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_different_values_have_different_digests(kind: pa.DataType) -> None:
    found = digest(pa.array(VALUES[kind], kind))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_a_value_has_its_digest_wherever_it_lies(kind: pa.DataType) -> None:
    values = VALUES[kind]
    whole = digest(pa.array(values, kind))
    moved = pa.array([*values, *values[::-1], *values], kind)
    count = len(values)
    assert digest(moved.slice(count, count)) == whole[::-1]
    assert digest(moved.slice(2 * count)) == whole
    assert [digest(pa.array([value], kind))[0] for value in values] == whole


def test_columns_count_by_their_order() -> None:
    left, right = pa.array([1, 2, 1]), pa.array([2, 1, 1])
    found = digest(left, right)
    assert len(set(found)) == 3
    assert digest(right, left) == [found[1], found[0], found[2]]


def test_many_numbers_have_no_digest_in_common() -> None:
    numbers = pa.array(np.arange(-50_000, 50_000))
    assert len(set(digest(numbers))) == 100_000
    assert len(set(digest(numbers, numbers))) == 100_000


def test_a_digest_is_the_same_in_every_process() -> None:
    code = (
        "import pyarrow as pa; from penstock.lance.diff.digests import digest_rows;"
        "print(digest_rows([pa.array(['a']), pa.array([1.5])], 1)[0])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert int(found.stdout) == digest(pa.array(["a"]), pa.array([1.5]))[0]
