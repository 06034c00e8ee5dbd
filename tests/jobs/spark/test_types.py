"""Arrow's types and Spark's, without Spark: what is cast on the way in and on the way out."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.jobs.spark.types import cast_in, cast_out, to_spark_schema

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 5)
# Each type, the one that Spark has for it, and values.
CASES: list[tuple[Any, str, list[Any]]] = [
    (pa.bool_(), "boolean", [True, None]),
    (pa.int8(), "tinyint", [-128, None]),
    (pa.uint8(), "smallint", [255, None]),
    (pa.uint16(), "int", [65535, None]),
    (pa.uint32(), "bigint", [2**32 - 1, None]),
    (pa.uint64(), "decimal(20, 0)", [2**64 - 1, None]),
    (pa.float16(), "float", [1.5, None]),
    (pa.float32(), "float", [float("inf"), None]),
    (pa.float64(), "double", [-0.0, None]),
    (pa.large_string(), "string", ["ä", None]),
    (pa.large_binary(), "binary", [b"\0", None]),
    (pa.binary(2), "binary", [b"ab", None]),
    (pa.dictionary(pa.int8(), pa.string()), "string", ["a", None, "a"]),
    (pa.decimal128(9, 2), "decimal(9, 2)", [Decimal("1.25"), None]),
    (pa.decimal256(38, 0), "decimal(38, 0)", [Decimal(10) ** 37, None]),
    (pa.date32(), "date", [NOON.date(), None]),
    (pa.date64(), "date", [NOON.date(), None]),
    (pa.timestamp("s"), "timestamp_ntz", [NOON.replace(microsecond=0), None]),
    (pa.timestamp("ns"), "timestamp_ntz", [NOON, None]),
    (pa.timestamp("ms", "Europe/Berlin"), "timestamp", [None]),
    (pa.time32("s"), "time(6)", [datetime.time(1, 2, 3), None]),
    (pa.time64("us"), "time(6)", [datetime.time(1, 2, 3, 4), None]),
    (pa.duration("ns"), "interval day to second", [datetime.timedelta(microseconds=-1), None]),
    (pa.null(), "void", [None]),
    (pa.list_(pa.float16(), 2), "array<float>", [[1.0, 2.0], None, [3.0, None]]),
    (pa.large_list(pa.uint8()), "array<smallint>", [[1], None, [], [None]]),
    (
        pa.struct([("a b", pa.uint8()), ("v", pa.list_(pa.float32(), 1))]),
        "struct<`a b`: smallint, `v`: array<float>>",
        [{"a b": 1, "v": [2.0]}, None, {"a b": None, "v": None}],
    ),
    (
        pa.map_(pa.large_string(), pa.uint16()),
        "map<string, int>",
        [[("k", 1), ("l", None)], None, []],
    ),
]


def one(values: list[Any], kind: Any, **more: Any) -> pa.RecordBatch:
    field = pa.field("c", kind, **more)
    return pa.record_batch([pa.array(values, kind)], schema=pa.schema([field]))


@pytest.mark.parametrize(("kind", "ddl", "values"), CASES, ids=[str(case[0]) for case in CASES])
def test_every_value_goes_into_spark_and_comes_back(kind: Any, ddl: str, values: list[Any]) -> None:
    batch = one(values, kind)
    assert to_spark_schema(batch.schema) == f"`c` {ddl}"
    inside = cast_in(batch)
    # What Spark makes of it is the same for the type and for its stand-in.
    assert to_spark_schema(inside.schema) == f"`c` {ddl}"
    assert cast_out(inside, batch.schema).equals(batch)
    # A slice hides rows before and after it.
    part = batch.slice(len(values) - 1)
    assert cast_out(cast_in(part), part.schema).to_pylist() == part.to_pylist()


def test_digits_beyond_microseconds_are_rounded_down() -> None:
    batch = one([-1, 1999], pa.timestamp("ns"))
    assert cast_in(batch)["c"].cast(pa.int64()).to_pylist() == [-1, 1]
    spans = one([-1, 1999], pa.duration("ns"))
    assert cast_in(spans)["c"].cast(pa.int64()).to_pylist() == [-1, 1]


@pytest.mark.parametrize("kind", [pa.decimal256(60, 2), pa.month_day_nano_interval()], ids=str)
def test_a_type_that_spark_lacks_is_refused_with_the_columns_name(kind: Any) -> None:
    with pytest.raises(InvalidRequest, match="no type for column c"):
        to_spark_schema(pa.schema([("c", pa.list_(kind))]))


@pytest.mark.parametrize(
    ("value", "given", "wanted"),
    [
        (-1, pa.int64(), pa.uint8()),
        (300, pa.int32(), pa.int8()),
        (1e300, pa.float64(), pa.float32()),
        (1.5, pa.float64(), pa.int64()),
        (2**53 + 1, pa.int64(), pa.float64()),
        (Decimal("1.25"), pa.decimal128(9, 2), pa.decimal128(9, 1)),
        ("x", pa.string(), pa.int32()),
        ([1.0, 2.0, 3.0], pa.list_(pa.float32()), pa.list_(pa.float32(), 2)),
        ({"a": 1}, pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int8()), ("b", pa.int8())])),
        ({"a": 300}, pa.struct([("a", pa.int32())]), pa.struct([("a", pa.int8())])),
    ],
)
def test_a_value_that_does_not_fit_is_an_error_of_its_column(
    value: Any, given: Any, wanted: Any
) -> None:
    with pytest.raises(SchemaMismatch, match="column c of the view is"):
        cast_out(one([value], given), pa.schema([("c", wanted)]))


def test_a_null_where_none_may_be_is_an_error_of_its_column() -> None:
    with pytest.raises(SchemaMismatch, match="column c of the view may not be null"):
        cast_out(one([None], pa.int8()), one([], pa.int8(), nullable=False).schema)


def test_columns_are_found_by_name_and_fields_of_structs_too() -> None:
    given = pa.record_batch([pa.array([{"x": 1, "y": 2}]), pa.array([3])], ["s", "n"])
    wanted = pa.schema([("n", pa.int32()), ("s", pa.struct([("y", pa.int8()), ("x", pa.int8())]))])
    assert cast_out(given, wanted).to_pylist() == [{"n": 3, "s": {"y": 2, "x": 1}}]
    with pytest.raises(SchemaMismatch, match="gives 0 columns m"):
        cast_out(given, pa.schema([("m", pa.int32())]))
