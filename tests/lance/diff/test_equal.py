"""Equality of rows: the same answer as comparing Python values, for every type."""

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.lance.diff.equal import rows_equal

FLOATS = st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf])
NUMBERS = st.integers(0, 2)
TEXTS = st.sampled_from(["", "a", "b"])

TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": (pa.int64(), NUMBERS),
    "bool": (pa.bool_(), st.booleans()),
    "double": (pa.float64(), FLOATS),
    "half": (pa.float16(), FLOATS),
    "text": (pa.string(), TEXTS),
    "binary": (pa.large_binary(), TEXTS.map(str.encode)),
    "time": (pa.timestamp("us"), NUMBERS),
    "decimal": (pa.decimal128(10, 2), NUMBERS),
    "null": (pa.null(), st.none()),
    "vector": (pa.list_(pa.float32(), 2), st.lists(FLOATS, min_size=2, max_size=2)),
    "list": (pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=3)),
    "large list": (pa.large_list(pa.float32()), st.lists(st.none() | FLOATS, max_size=3)),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))]),
        st.fixed_dictionaries(
            {"a": st.none() | NUMBERS, "b": st.none() | st.lists(FLOATS, max_size=2)}
        ),
    ),
    "lists of structs": (
        pa.list_(pa.struct([("a", pa.string())])),
        st.lists(st.none() | st.fixed_dictionaries({"a": st.none() | TEXTS}), max_size=2),
    ),
    "map": (
        pa.map_(pa.string(), pa.int32()),
        st.lists(st.tuples(TEXTS, st.none() | NUMBERS), max_size=2),
    ),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), TEXTS),
}


@pytest.mark.parametrize("name", TYPES)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_rows_are_equal_when_their_values_are(name: str, data: st.DataObject) -> None:
    kind, value = TYPES[name]
    pairs = data.draw(st.lists(st.tuples(st.none() | value, st.none() | value), max_size=8))
    start = data.draw(st.integers(0, len(pairs)))
    left, right = (pa.array([pair[side] for pair in pairs], kind)[start:] for side in (0, 1))
    values = zip(left.to_pylist(), right.to_pylist(), strict=True)
    expected = [repr(a) == repr(b) for a, b in values]
    assert rows_equal(left, right).tolist() == expected


def test_values_of_another_type_are_other_values() -> None:
    assert rows_equal(pa.array([1], pa.int32()), pa.array([1], pa.int64())).tolist() == [False]


def test_an_extension_is_compared_by_what_it_stores() -> None:
    left = pa.array([b"0" * 16, b"1" * 16], pa.uuid())
    right = pa.array([b"0" * 16, b"2" * 16], pa.uuid())
    assert rows_equal(left, right).tolist() == [True, False]
