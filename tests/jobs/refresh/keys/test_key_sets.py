"""Sets of groups by their keys, compared as Spark compares them."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.jobs.refresh.keys.key_sets import KeySet

NAN = float("nan")
OTHER_NAN = np.array([0x7FF8_0000_0000_0001], np.uint64).view(np.float64)[0]


def keys(*columns: tuple[list[Any], Any]) -> list[pa.Array]:
    return [pa.array(values, kind) for values, kind in columns]


def test_integers_of_all_widths_are_equal_by_value() -> None:
    for one, other in ((pa.int32(), pa.int64()), (pa.int64(), pa.int8()), (pa.uint8(), pa.int16())):
        found = KeySet(keys(([1, 5, None], one))).contains(keys(([5, None, 7], other)))
        assert found.tolist() == [True, True, False]
    small = KeySet(keys(([1, -1], pa.int8())))
    assert small.contains(keys(([257, 2**32 + 1, 2**63 - 1, -1], pa.int64()))).tolist() == [
        False, False, False, True,
    ]  # fmt: skip
    assert len(KeySet.decode(small.encode())) == 2


@pytest.mark.parametrize(
    ("inside", "outside", "kind"),
    [
        ([1, None], [2, 0], pa.int64()),
        (["a", None], ["b", ""], pa.large_string()),
        ([NAN, 0.0, None], [1.0], pa.float64()),
        ([True, None], [False], pa.bool_()),
        ([b"\0"], [b"", None], pa.binary(1)),
        ([Decimal("1.10")], [Decimal("1.00")], pa.decimal128(5, 2)),
        ([datetime.date(2024, 1, 1), None], [datetime.date(2024, 1, 2)], pa.date32()),
        ([1, None], [1000], pa.timestamp("ns")),
        ([1, None], [2], pa.time64("ns")),
        ([2**64 - 1], [2**63, None], pa.uint64()),
        ([None], [], pa.null()),
        ([[1.0, NAN], None, [-0.0]], [[1.0], [None], []], pa.list_(pa.float32())),
        (
            [{"a": 1, "b": None}],
            [{"a": 1, "b": "None"}, None],
            pa.struct({"a": pa.int8(), "b": pa.string()}),
        ),
        (["a"], ["b", None], pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=str,
)
def test_values_of_any_type_are_found(inside: list[Any], outside: list[Any], kind: Any) -> None:
    if pa.types.is_fixed_size_binary(kind):
        kind = pa.binary()
    made = KeySet(keys((inside + inside, kind)))
    assert len(made) == len(inside)
    again = KeySet.decode(made.encode())
    for each in (made, again):
        assert each.contains(keys((inside, kind))).all()
        assert not each.contains(keys((outside, kind))).any()


def test_nan_is_one_value_and_so_is_zero() -> None:
    made = KeySet(keys(([NAN, OTHER_NAN, 0.0, -0.0], pa.float64())))
    assert len(made) == 2
    assert made.contains(keys(([OTHER_NAN, NAN, -0.0, 0.0], pa.float64()))).all()
    nested = KeySet(keys(([[-0.0]], pa.list_(pa.float64()))))
    assert nested.contains(keys(([[0.0]], pa.list_(pa.float64())))).all()


def test_what_spark_does_not_tell_apart_is_one_value() -> None:
    made = KeySet(keys(([1000, 1999, 2000], pa.timestamp("ns"))))
    assert len(made) == 2
    assert made.contains(keys(([1500], pa.timestamp("ns")))).all()


def test_several_keys_belong_together() -> None:
    made = KeySet(keys(([1, 1, None, 2], pa.int64()), (["a", "b", None, "a"], pa.string())))
    wanted = keys(([1, 2, None, None, 1], pa.int64()), (["b", "b", None, "a", None], pa.string()))
    assert made.contains(wanted).tolist() == [True, False, True, False, False]
    empty = KeySet(keys(([], pa.int64()), ([], pa.string())))
    assert len(empty) == 0
    assert not empty.contains(wanted).any()
    assert len(KeySet.join(made, empty)) == 4
    assert len(KeySet.join(made, KeySet(wanted))) == 7


def test_random_keys_are_found_as_python_finds_them() -> None:
    chance = np.random.default_rng(3)
    for _ in range(50):
        sides = []
        for count in (int(chance.integers(0, 30)), 200):
            columns = [chance.integers(0, size, count).tolist() for size in (2, 5, 3)]
            columns[1] = [None if value == 0 else value for value in columns[1]]
            sides.append(columns)
        inside, asked = sides
        made = KeySet(keys(*((values, pa.int64()) for values in inside)))
        known = set(zip(*inside, strict=True))
        expected = [row in known for row in zip(*asked, strict=True)]
        assert made.contains(keys(*((values, pa.int64()) for values in asked))).tolist() == expected
        assert len(made) == len(known)
