"""Which columns a function can take: wider types are fine, others are not."""

import pyarrow as pa
import pytest

from penstock.lance.columns.input_types import fits


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        (pa.int32(), pa.int64()),
        (pa.uint64(), pa.int64()),
        (pa.uint8(), pa.int16()),
        (pa.int64(), pa.float32()),
        (pa.float64(), pa.float32()),
        (pa.large_string(), pa.string()),
        (pa.dictionary(pa.int8(), pa.string()), pa.large_string()),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us")),
        (pa.list_(pa.float16(), 4), pa.list_(pa.float64())),
        (pa.list_(pa.int32()), pa.large_list(pa.int64())),
        (pa.map_(pa.string(), pa.string()), pa.string()),
        (pa.null(), pa.string()),
    ],
)
def test_a_function_takes_what_its_type_has_room_for(kind: pa.DataType, taken: pa.DataType) -> None:
    assert fits(kind, taken)


@pytest.mark.parametrize(
    ("kind", "taken"),
    [
        (pa.int64(), pa.string()),
        (pa.string(), pa.int64()),
        (pa.string(), pa.binary()),
        (pa.int64(), pa.int32()),
        (pa.int8(), pa.uint16()),
        (pa.float32(), pa.int64()),
        (pa.list_(pa.float32(), 4), pa.list_(pa.float32(), 8)),
        (pa.list_(pa.string()), pa.list_(pa.int64())),
        (pa.list_(pa.int64()), pa.int64()),
        (pa.date32(), pa.timestamp("us")),
    ],
)
def test_a_function_does_not_take_another_type(kind: pa.DataType, taken: pa.DataType) -> None:
    assert not fits(kind, taken)
