"""The columns of a query as Iceberg knows them, and those of an Iceberg view as Arrow does."""

import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import InvalidRequest

Json = dict[str, Any]

TO_ICEBERG = {
    "bool": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "uint64": "decimal(20, 0)",
    "halffloat": "float",
    "float": "float",
    "double": "double",
    "string": "string",
    "large_string": "string",
    "string_view": "string",
    "binary": "binary",
    "large_binary": "binary",
    "binary_view": "binary",
    "date32[day]": "date",
    "date64[ms]": "date",
}
TO_ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", "UTC"),
    "string": pa.string(),
    "uuid": pa.binary(16),
    "binary": pa.binary(),
    "unknown": pa.null(),
}
# The nearest of those that lancedb's client can read in the description of a view.
FOR_LANCEDB = TO_ARROW | {
    "time": pa.int64(),
    "timestamptz": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("us"),
    "timestamptz_ns": pa.timestamp("us"),
}
DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
FIXED = re.compile(r"fixed\[\s*(\d+)\s*\]")


class _NoType(Exception):
    """Iceberg has no such type."""


def to_iceberg(schema: pa.Schema) -> Json:
    """The schema of a view with these columns; raises InvalidRequest for one that it can't have."""
    ids = itertools.count(1)
    fields = []
    for field in schema:
        try:
            fields.append(_to_field(field, ids))
        except _NoType as found:
            raise InvalidRequest(
                f"column {field.name} is {field.type}, and Iceberg has no type for {found}",
                detail=f"cast {field.name} in the query, or make a materialized view of it",
            ) from None
    return {"type": "struct", "schema-id": 0, "fields": fields}


def to_arrow(schema: Json, types: Mapping[str, pa.DataType] = TO_ARROW) -> pa.Schema:
    """The columns of a view; what Arrow has no type for is binary."""
    return pa.schema([_to_arrow_field(field, types) for field in schema["fields"]])


def find_unread(schema: Json) -> tuple[str, str] | None:
    """The first column that Arrow has no type for, and its type."""
    for field in schema["fields"]:
        if (kind := _find_unknown(field["type"])) is not None:
            return field["name"], kind
    return None


def _find_unknown(kind: Any) -> str | None:
    if isinstance(kind, str):
        is_known = kind in TO_ARROW or DECIMAL.fullmatch(kind) or FIXED.fullmatch(kind)
        return None if is_known else kind
    inner = [kind[key] for key in ("element", "key", "value") if key in kind]
    inner += [field["type"] for field in kind.get("fields", ())]
    return next((found for each in inner if (found := _find_unknown(each)) is not None), None)


def _to_field(field: "pa.Field[Any]", ids: Iterator[int]) -> Json:
    id = next(ids)
    return {"id": id, "name": field.name, "required": False, "type": _to_type(field.type, ids)}


def _to_type(kind: pa.DataType, ids: Iterator[int]) -> Any:
    if (plain := TO_ICEBERG.get(str(kind))) is not None:
        return plain
    if isinstance(kind, pa.BaseExtensionType):
        return _to_type(kind.storage_type, ids)
    if kinds.is_dictionary(kind):
        return _to_type(kind.value_type, ids)
    if kinds.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if kinds.is_time(kind):
        return "time"
    if kinds.is_decimal(kind) and kind.precision <= 38 and 0 <= kind.scale <= kind.precision:
        return f"decimal({kind.precision}, {kind.scale})"
    if kinds.is_fixed_size_binary(kind):
        return f"fixed[{kind.byte_width}]"
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return _to_list(kind, ids)
    if kinds.is_map(kind):
        key, value = next(ids), next(ids)
        return {
            "type": "map",
            "key-id": key,
            "key": _to_type(kind.key_type, ids),
            "value-id": value,
            "value": _to_type(kind.item_type, ids),
            "value-required": False,
        }
    if kinds.is_struct(kind) and kind.num_fields:
        return {"type": "struct", "fields": [_to_field(field, ids) for field in kind]}
    raise _NoType(str(kind))


def _to_list(kind: Any, ids: Iterator[int]) -> Json:
    element = next(ids)
    return {
        "type": "list",
        "element-id": element,
        "element": _to_type(kind.value_type, ids),
        "element-required": False,
    }


def _to_arrow_field(field: Json, types: Mapping[str, pa.DataType]) -> "pa.Field[Any]":
    return pa.field(field["name"], _to_arrow_type(field["type"], types), not field["required"])


def _to_arrow_type(kind: Any, types: Mapping[str, pa.DataType]) -> pa.DataType:
    match kind:
        case str() if kind in types:
            return types[kind]
        case str() if found := DECIMAL.fullmatch(kind):
            return pa.decimal128(int(found[1]), int(found[2]))
        case str() if found := FIXED.fullmatch(kind):
            return pa.binary(int(found[1]))
        case {"type": "list", "element": element}:
            return pa.list_(_to_arrow_type(element, types))
        case {"type": "map", "key": key, "value": value}:
            return pa.map_(_to_arrow_type(key, types), _to_arrow_type(value, types))
        case {"type": "struct", "fields": fields}:
            return pa.struct([_to_arrow_field(field, types) for field in fields])
    return pa.binary()
