"""Arrow's types and Iceberg's: columns of a query that becomes a view, and those of a view."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.iceberg.schemas import check_schema
from penstock.sql.definitions.iceberg_types import FOR_LANCEDB, to_arrow, to_iceberg

US, UTC = pa.timestamp("us"), pa.timestamp("us", "UTC")
# A type, Iceberg's, and what the view's columns are to Arrow, if that is another.
TYPES: list[tuple[pa.DataType, Any, pa.DataType | None]] = [
    (pa.bool_(), "boolean", None),
    (pa.int8(), "int", pa.int32()),
    (pa.uint16(), "int", pa.int32()),
    (pa.int32(), "int", None),
    (pa.uint32(), "long", pa.int64()),
    (pa.int64(), "long", None),
    (pa.uint64(), "decimal(20, 0)", pa.decimal128(20)),
    (pa.float16(), "float", pa.float32()),
    (pa.float32(), "float", None),
    (pa.float64(), "double", None),
    (pa.decimal128(9, 2), "decimal(9, 2)", None),
    (pa.large_string(), "string", pa.string()),
    (pa.dictionary(pa.int8(), pa.string()), "string", pa.string()),
    (pa.large_binary(), "binary", pa.binary()),
    (pa.binary(3), "fixed[3]", None),
    (pa.date64(), "date", pa.date32()),
    (pa.time32("s"), "time", pa.time64("us")),
    (pa.timestamp("ns"), "timestamp", US),
    (pa.timestamp("ms", "Europe/Berlin"), "timestamptz", UTC),
]


@pytest.mark.parametrize(("kind", "name", "back"), TYPES, ids=[str(each[0]) for each in TYPES])
def test_plain_types(kind: pa.DataType, name: str, back: pa.DataType | None) -> None:
    made = to_iceberg(pa.schema([("a", kind)]))
    assert made["fields"] == [{"id": 1, "name": "a", "required": False, "type": name}]
    assert to_arrow(made) == pa.schema([("a", back or kind)])


def test_nested_types_have_ids_of_their_own() -> None:
    vector = pa.list_(pa.float32(), 4)
    inner = pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.large_list(UTC)))])
    made = to_iceberg(pa.schema([("v", vector), ("s", inner), ("n", pa.int64())]))
    # Iceberg's own rules: each part has an id, and no two the same.
    assert check_schema(made, "schema") == made
    plain = pa.struct([("x", pa.int32()), ("m", pa.map_(pa.string(), pa.list_(UTC)))])
    wanted = pa.schema([("v", pa.list_(pa.float32())), ("s", plain), ("n", pa.int64())])
    assert to_arrow(made) == wanted
    assert to_arrow(made, FOR_LANCEDB).field("s").type.field("m").type.item_type == pa.list_(US)


@pytest.mark.parametrize(
    "kind",
    [pa.null(), pa.duration("s"), pa.decimal256(60, 2), pa.list_(pa.duration("s")), pa.struct([])],
    ids=str,
)
def test_what_iceberg_has_no_type_for_names_the_column(kind: pa.DataType) -> None:
    with pytest.raises(InvalidRequest, match=r"column odd is .* Iceberg has no type") as caught:
        to_iceberg(pa.schema([("a", pa.int32()), ("odd", kind)]))
    assert "cast odd" in caught.value.detail


def test_types_that_arrow_has_not_are_binary() -> None:
    field = {"id": 1, "name": "a", "required": True, "type": "variant"}
    assert to_arrow({"fields": [field]}) == pa.schema([pa.field("a", pa.binary(), False)])
