"""Values as people see them: whole when small, else cut, with their size."""

import datetime
import decimal
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.lance.read import formats
from penstock.lance.read.cells import kind_of, show_cell

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


def show(value: Any, kind: pa.DataType) -> Any:
    """As JSON has it."""
    return json.loads(json.dumps(show_cell(pa.array([value], kind)[0])))


def written(rows: pa.Table) -> dict[str, Any]:
    sink = io.BytesIO()
    formats.write_json(rows.to_reader(), sink)
    found: dict[str, Any] = json.loads(sink.getvalue())
    return found


@pytest.mark.parametrize(
    ("value", "kind", "shown"),
    [
        (None, pa.int8(), None),
        (True, pa.bool_(), True),
        (-7, pa.int64(), -7),
        (2**53, pa.int64(), {"kind": "number", "value": "9007199254740992"}),
        (2**64 - 1, pa.uint64(), {"kind": "number", "value": "18446744073709551615"}),
        (0.1, pa.float32(), 0.1),
        (np.float16(0.1), pa.float16(), 0.1),
        (0.1 + 0.2, pa.float64(), 0.1 + 0.2),
        (float("nan"), pa.float64(), {"kind": "number", "value": "NaN"}),
        (float("-inf"), pa.float32(), {"kind": "number", "value": "-Infinity"}),
        ("<script>\u202e", pa.large_string(), "<script>\u202e"),
        ("é" * 500, pa.string(), "é" * 500),
        ("😀" * 700, pa.string(), {"kind": "text", "value": "😀" * 500, "length": 700}),
        (b"abc", pa.binary(), {"kind": "bytes", "length": 3, "media": None}),
        (PNG, pa.large_binary(), {"kind": "bytes", "length": 108, "media": "image/png"}),
        (b"abcd", pa.binary(4), {"kind": "bytes", "length": 4, "media": None}),
        (decimal.Decimal("1.50"), pa.decimal128(9, 2), "1.50"),
        (datetime.date(2026, 1, 2), pa.date32(), "2026-01-02"),
        (1, pa.timestamp("ns"), "1970-01-01T00:00:00.000000001"),
        (0, pa.timestamp("us", "UTC"), "1970-01-01T00:00:00.000000Z"),
        (2**62, pa.timestamp("s"), "<value out of range: 4611686018427387904>"),
        (90, pa.time32("s"), "00:01:30"),
        (5, pa.duration("ms"), "5 ms"),
        ([1.5, 2], pa.list_(pa.float32(), 2), {"kind": "vector", "value": [1.5, 2], "length": 2}),
        (["a"], pa.list_(pa.string()), {"kind": "list", "value": ["a"], "length": 1}),
        (
            {"a": 1},
            pa.struct([("a", pa.int8())]),
            {"kind": "struct", "value": {"a": 1}, "length": 1},
        ),
        (
            [("k", 1)],
            pa.map_(pa.string(), pa.int8()),
            {"kind": "map", "value": [["k", 1]], "length": 1},
        ),
    ],
)
def test_a_value_is_shown_as_what_it_is(value: Any, kind: pa.DataType, shown: Any) -> None:
    assert show(value, kind) == shown


def test_text_that_is_no_text_is_shown_all_the_same() -> None:
    broken = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"a\xffb")]
    )
    assert show_cell(broken[0]) == "a\ufffdb"


def test_a_long_vector_is_shown_by_some_of_its_numbers() -> None:
    told = show(list(range(1000)), pa.list_(pa.float32(), 1000))
    assert (told["kind"], told["length"], len(told["value"])) == ("vector", 1000, 64)
    assert (told["value"][0], told["value"][-1]) == (0, 999)
    assert told["value"] == sorted(told["value"])


def test_long_and_deep_values_are_cut() -> None:
    told = show(list(range(1000)), pa.list_(pa.int64()))
    assert (len(told["value"]), told["length"]) == (20, 1000)
    wide = pa.struct([(f"f{n}", pa.int8()) for n in range(200)])
    told = show({f"f{n}": 1 for n in range(200)}, wide)
    assert (len(told["value"]), told["length"]) == (50, 200)
    kind: pa.DataType = pa.int64()
    value: Any = 1
    for _ in range(30):
        kind, value = pa.list_(kind), [value]
    assert len(json.dumps(show(value, kind))) < 2_000


def test_each_column_says_what_is_in_it() -> None:
    kinds = {
        "number": pa.decimal128(5, 1),
        "text": pa.string_view(),
        "bytes": pa.binary_view(),
        "vector": pa.list_(pa.float16(), 3),
        "list": pa.list_(pa.string(), 3),
        "time": pa.duration("s"),
        "map": pa.map_(pa.string(), pa.string()),
        "boolean": pa.bool_(),
        "struct": pa.struct([("a", pa.int8())]),
        "other": pa.null(),
    }
    assert {word: kind_of(pa.field("x", kind)) for word, kind in kinds.items()} == {
        word: word for word in kinds
    }


def test_rows_are_written_until_there_are_enough() -> None:
    told = written(pa.table({"a": range(1500), "a b": ["x"] * 1500}))
    assert (len(told["rows"]), told["complete"]) == (1000, False)
    assert told["columns"][1] == {"name": "a b", "type": "string", "kind": "text"}
    few = written(pa.table({"a": range(1000)}))
    assert (len(few["rows"]), few["complete"]) == (1000, True)
    assert written(pa.table({"a": pa.array([], pa.int8())})) == {
        "columns": [{"name": "a", "type": "int8", "kind": "number"}],
        "rows": [],
        "complete": True,
    }


def test_rows_are_written_until_they_are_large_enough() -> None:
    wide = {f"c{n}": ["x" * 400] * 100 for n in range(400)}
    told = written(pa.table(wide))
    assert told["complete"] is False
    assert 10 < len(told["rows"]) < 30


def test_two_thousand_columns_and_ten_megabytes_are_no_trouble() -> None:
    told = written(pa.table({f"c{n}": [n] for n in range(2000)}))
    assert told["rows"] == [list(range(2000))]
    told = written(pa.table({"a": ["x" * 10_000_000] * 3}))
    assert [row[0]["length"] for row in told["rows"]] == [10_000_000] * 3


def test_row_ids_are_texts_that_no_browser_rounds() -> None:
    told = written(pa.table({"_rowid": pa.array([2**60 + 1, None], pa.uint64())}))
    assert told["rows"] == [[str(2**60 + 1)], [None]]


def test_dictionaries_are_shown_by_their_values() -> None:
    told = written(pa.table({"a": pa.array(["x", "y"]).dictionary_encode()}))
    assert told["rows"] == [["x"], ["y"]]


def test_csv_has_every_value() -> None:
    rows = pa.table(
        {
            "a": [1, None],
            "t": ['x "y"\n', "=1"],
            "l": [[1, 2], None],
            "b": [b"\x00\xff", b""],
            "s": pa.array([2**62, 0], pa.timestamp("s")),
            "n": pa.array([{"s": 2**62}, None], pa.struct([("s", pa.timestamp("s"))])),
        }
    )
    sink = io.BytesIO()
    formats.write_csv(rows.select(["a", "t", "l", "b"]), sink)
    assert sink.getvalue().decode() == (
        '"a","t","l","b"\n1,"x ""y""\n","[1,2]","AP8="\n,"=1",,""\n'
    )
    sink = io.BytesIO()
    formats.write_csv(rows.select(["n"]), sink)
    assert "4611686018427387904" in sink.getvalue().decode()


def test_parquet_has_every_value() -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"a": [1, None], "l": [[1.5], None], "b": [b"\x00", b""]})
    sink = io.BytesIO()
    formats.write_parquet(rows.to_reader(), sink)
    assert pq.read_table(io.BytesIO(sink.getvalue())).equals(rows)
