"""Arrow types from the protocol's JSON form: the inverse of `details`. Everything is pure."""

import base64
import re
from collections.abc import Sequence
from typing import Any

from penstock.errors import InvalidRequest
from penstock.lance.doors import pa

# The protocol's names, and those that pyarrow and Lance print, by pyarrow's constructor.
PLAIN = {
    "null": "null",
    "bool": "bool_",
    "boolean": "bool_",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint8": "uint8",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "float16": "float16",
    "halffloat": "float16",
    "float32": "float32",
    "float": "float32",
    "float64": "float64",
    "double": "float64",
    "utf8": "string",
    "string": "string",
    "large_utf8": "large_string",
    "large_string": "large_string",
    "binary": "binary",
    "large_binary": "large_binary",
    "date32": "date32",
    "date32:day": "date32",
    "date32[day]": "date32",
    "date64": "date64",
    "date64:ms": "date64",
    "date64[ms]": "date64",
}
# The unit when none is given; a type may name its own, as in `timestamp[ns, tz=UTC]`.
UNITS = {"timestamp": "us", "time32": "ms", "time64": "us", "duration": "us"}
_WITH_UNIT = re.compile(r"(timestamp|time32|time64|duration)\[(s|ms|us|ns)(?:, ?tz=([^\]]+))?\]")
_DECIMAL = re.compile(r"decimal(32|64|128|256)? ?\( ?(\d{1,3}) ?, ?(-?\d{1,3}) ?\)")
_BYTES = re.compile(r"fixed_size_binary\[(\d{1,9})\]")
_VECTOR = re.compile(r"fixed_size_list:(\w+):(\d{1,9})")
MAX_DEPTH = 32


def to_arrow_type(wanted: object, depth: int = 0) -> "pa.DataType":
    """The Arrow type of `{"type": …, "fields": …, "length": …}`, or of the type's name alone."""
    if isinstance(wanted, str):
        wanted = {"type": wanted}
    if not isinstance(wanted, dict) or not isinstance(wanted.get("type"), str):
        raise _bad(wanted, 'use {"type": "int32"}, with fields and length where the type has them')
    if depth > MAX_DEPTH:
        raise InvalidRequest("data_type is nested too deeply", detail=f"use {MAX_DEPTH} levels")
    name = wanted["type"].strip()
    try:
        found = _simple(name) or _sized(name, wanted) or _nested(name.lower(), wanted, depth)
    except (ValueError, TypeError, OverflowError) as error:
        raise _bad(wanted, str(error)) from error
    if found is None:
        raise _bad(wanted, "this type is unknown")
    return found


def _simple(name: str) -> "pa.DataType | None":
    lower = name.lower()
    if lower in PLAIN:
        made: pa.DataType = getattr(pa, PLAIN[lower])()
        return made
    if lower in UNITS:
        return getattr(pa, lower)(UNITS[lower])
    if match := _WITH_UNIT.fullmatch(name):
        kind, unit, zone = match.groups()
        return pa.timestamp(unit, tz=zone) if zone else getattr(pa, kind)(unit)
    if match := _DECIMAL.fullmatch(lower):
        bits, precision, scale = match.groups()
        return getattr(pa, f"decimal{bits or 128}")(int(precision), int(scale))
    if match := _BYTES.fullmatch(lower):
        return pa.binary(int(match[1]))
    if match := _VECTOR.fullmatch(lower):
        return pa.list_(to_arrow_type(match[1]), int(match[2]))
    return None


def _sized(name: str, wanted: dict[str, Any]) -> "pa.DataType | None":
    lower = name.lower()
    if lower == "fixed_size_binary":
        return pa.binary(_length(wanted))
    if lower in ("decimal128", "decimal256"):
        # The protocol has one number for both: precision * 1000 + scale.
        precision, scale = divmod(_length(wanted), 1000)
        return getattr(pa, lower)(precision, scale)
    return None


def _nested(name: str, wanted: dict[str, Any], depth: int) -> "pa.DataType | None":
    if name not in ("list", "large_list", "fixed_size_list", "struct", "map"):
        return None
    fields = [_to_field(field, depth + 1) for field in wanted.get("fields") or []]
    if name == "struct":
        return pa.struct(fields)
    if len(fields) != 1:
        raise ValueError(f"{name} has exactly one field")
    if name == "list":
        return pa.list_(fields[0])
    if name == "large_list":
        return pa.large_list(fields[0])
    if name == "fixed_size_list":
        return pa.list_(fields[0], _length(wanted))
    entries = fields[0].type
    if not pa.types.is_struct(entries) or entries.num_fields != 2:
        raise ValueError("the field of a map is a struct of key and value")
    return pa.map_(entries.field(0), entries.field(1))


def _to_field(field: object, depth: int) -> "pa.Field[Any]":
    if not isinstance(field, dict) or not isinstance(field.get("name"), str):
        raise ValueError("each of fields has a name and a type")
    if not field["name"].isprintable():
        raise ValueError("the name of a field holds control characters")
    nullable = field.get("nullable") is not False
    kind = to_arrow_type(field.get("type"), depth)
    return pa.field(field["name"], kind, nullable, field.get("metadata") or None)


def _length(wanted: dict[str, Any]) -> int:
    length = wanted.get("length")
    if not isinstance(length, int) or isinstance(length, bool) or not 0 < length < 2**31:
        raise ValueError(f"{wanted['type']} has a length of at least 1")
    return length


def _bad(wanted: object, why: str) -> InvalidRequest:
    return InvalidRequest(f"data_type {str(wanted)[:200]} is not an Arrow type", detail=why)


def decode_schema(text: str) -> "pa.Schema":
    """A schema as clients send it: base64 of Arrow's IPC message."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def encode_schema(schema: "pa.Schema") -> str:
    """The inverse of `decode_schema`."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def find_type(schema: "pa.Schema", path: Sequence[str]) -> "pa.DataType | None":
    """The type of a field by its path; None if there is no such field."""
    if path[0] not in schema.names:
        return None
    kind: pa.DataType = schema.field(path[0]).type
    for part in path[1:]:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return None
        kind = kind.field(part).type
    return kind
