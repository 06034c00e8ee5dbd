"""Arrow types in the protocol's JSON form, there and back, and paths of nested fields."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.columns.schemas import to_arrow_type
from penstock.lance.read.details import to_json_schema

TYPES = [
    pa.null(),
    pa.bool_(),
    pa.int8(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(16),
    pa.date32(),
    pa.date64(),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("s", "Europe/Berlin"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.time32("ms"),
    pa.time32("s"),
    pa.duration("us"),
    pa.duration("ms"),
    pa.decimal32(5, 2),
    pa.decimal128(20, 3),
    pa.decimal128(5, -2),
    pa.decimal256(40, 0),
    pa.list_(pa.float32()),
    pa.large_list(pa.string()),
    pa.list_(pa.float32(), 8),
    pa.list_(pa.float16(), 8),
    pa.list_(pa.list_(pa.bool_(), 2), 3),
    pa.list_(pa.timestamp("ns", "UTC")),
    pa.list_(pa.field("element", pa.struct([("x", pa.decimal256(50, 4))]), False)),
    pa.struct([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.list_(pa.int8()))]),
    pa.map_(pa.string(), pa.int64()),
]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_what_describe_says_can_be_sent_back(kind: pa.DataType) -> None:
    described = to_json_schema(pa.schema([pa.field("c", kind)]))["fields"][0]["type"]
    assert to_arrow_type(described) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Utf8", pa.string()),
        ("double", pa.float64()),
        ("boolean", pa.bool_()),
        ("timestamp[ns]", pa.timestamp("ns")),
        ("timestamp[ms, tz=UTC]", pa.timestamp("ms", "UTC")),
        ("decimal128(10, 2)", pa.decimal128(10, 2)),
        ("decimal(10,2)", pa.decimal128(10, 2)),
        ("date32:day", pa.date32()),
        ("date64[ms]", pa.date64()),
        ("halffloat", pa.float16()),
        ("fixed_size_binary[16]", pa.binary(16)),
        ("timestamp[us, tz=+02:00]", pa.timestamp("us", "+02:00")),
        ("fixed_size_list:float:16", pa.list_(pa.float32(), 16)),
    ],
)
def test_names_alone_are_types(name: str, kind: pa.DataType) -> None:
    assert to_arrow_type(name) == kind


def nested(depth: int) -> dict[str, Any]:
    inner = {"type": "int8"} if depth == 0 else nested(depth - 1)
    return {"type": "list", "fields": [{"name": "item", "type": inner, "nullable": True}]}


@pytest.mark.parametrize(
    "wanted",
    [
        None,
        [],
        {},
        "",
        "list",
        "time64[s]",
        "decimal128(99, 2)",
        {"type": 5},
        {"type": "list", "fields": []},
        {"type": "list", "fields": ["x"]},
        {"type": "list", "fields": [{"name": "a\x00", "type": "int8"}]},
        {"type": "struct", "fields": {"a": 1}},
        {"type": "map", "fields": [{"name": "entries", "type": {"type": "int8"}}]},
        {"type": "fixed_size_binary", "length": -1},
        {"type": "fixed_size_binary", "length": 2**40},
        {"type": "decimal128", "length": 99000},
        nested(100),
    ],
    ids=lambda wanted: str(wanted)[:40],
)
def test_what_is_no_type_is_refused(wanted: object) -> None:
    with pytest.raises(InvalidRequest):
        to_arrow_type(wanted)


@pytest.mark.parametrize(
    ("text", "path", "shown"),
    [
        ("a", ("a",), "a"),
        ("a.b", ("a", "b"), "a.b"),
        ("`a.b`.c", ("a.b", "c"), "`a.b`.c"),
        ("`a`.b", ("a", "b"), "a.b"),
        ("`a``b`", ("a`b",), "`a``b`"),
        ("ä ö.b-c", ("ä ö", "b-c"), "ä ö.b-c"),
    ],
)
def test_paths_are_read_and_shown(text: str, path: tuple[str, ...], shown: str) -> None:
    assert parse_path(text) == path
    assert show_path(path) == shown


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", "`a", "a`b", "``", "`a`b", "`a``"])
def test_bad_paths_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_path(text)
