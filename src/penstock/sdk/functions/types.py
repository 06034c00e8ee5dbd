"""Types of columns as people write them, in the protocol's words and in Arrow's.

A type is a Python type (`int`, `list[float]`, a TypedDict), a word of the protocol (`"int32"`),
what `vector` gives, or an Arrow type. Only the last one, and `to_arrow`, need pyarrow.
"""

import datetime
import decimal
import enum
import re
import typing
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.annotations import (
    LISTS,
    NoSuchValues,
    is_record,
    list_classes,
    list_fields,
    read_enum,
    show,
    without_none,
)
from penstock.errors import InvalidRequest
from penstock.sdk.connection.optional_libraries import load

if TYPE_CHECKING:
    import pyarrow as pa

# A type on the wire: {"type": …}, with `fields` and `length` where it has them.
Wire = dict[str, Any]

PYTHON: dict[Any, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "utf8",
    bytes: "binary",
    datetime.date: "date32",
    datetime.datetime: "timestamp[us]",
    datetime.time: "time64[us]",
    datetime.timedelta: "duration[us]",
    decimal.Decimal: "decimal128(38, 18)",
    uuid.UUID: "utf8",
}
WORDS = {
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "halffloat", "float32", "float", "float64", "double", "bool"),
    *("utf8", "string", "large_utf8", "large_string", "binary", "large_binary"),
    *("date32", "date64", "timestamp", "time32", "time64", "duration"),
}
PATTERNS = re.compile(
    r"(timestamp\[(s|ms|us|ns)(, ?tz=[^\]]+)?\]|time32\[(s|ms)\]|time64\[(us|ns)\]"
    r"|duration\[(s|ms|us|ns)\]|decimal(128|256)\(\d+, ?-?\d+\)|fixed_size_list:\w+:\d+)"
)
# Types of numpy's numbers, by their names there.
NUMPY = {"bool", "bool_", *(w for w in WORDS if w.startswith(("int", "uint", "float")))}
# Arrow's word where it is another one.
ARROW_WORDS = {"date32[day]": "date32", "date64[ms]": "date64", "halffloat": "float16"}


def vector(length: int, element: Any = "float32") -> Wire:
    """The type of vectors of this length, which vector indexes and searches work on."""
    if length < 1:
        raise InvalidRequest(f"a vector has the length {length}", detail="use 1 or more")
    return {"type": "fixed_size_list", "fields": [_item(element)], "length": length}


def read_type(given: Any, what: str = "the type") -> Wire:
    """A type in the protocol's words; `what` it is of, for the error."""
    if isinstance(given, dict) and "type" in given:
        return given
    if isinstance(given, str):
        if given not in WORDS and not PATTERNS.fullmatch(given):
            raise _unknown(what, given)
        return {"type": given}
    if type(given).__module__.startswith("pyarrow"):
        return _from_arrow(given)
    if given in PYTHON if isinstance(given, type) else False:
        return {"type": PYTHON[given]}
    return _read_annotation(given, what)


def find_type(annotation: Any) -> Wire | None:
    """The type of columns that hold such values; None where several do, or it is not known."""
    if isinstance(annotation, type) and issubclass(annotation, uuid.UUID):
        return None
    try:
        return read_type(annotation)
    except InvalidRequest:
        return None


def read_fields(given: Any, what: str) -> dict[str, Wire]:
    """The columns of a mapping, an Arrow schema or a TypedDict."""
    if is_record(given):
        given = _list_fields(given, what)
    elif type(given).__module__.startswith("pyarrow"):
        given = {field.name: field.type for field in given}
    if not isinstance(given, Mapping) or not given:
        raise InvalidRequest(
            f"{what} is {given!r}", detail='write the columns with their types: {"name": str}'
        )
    return {str(name): read_type(kind, f"{what}[{name!r}]") for name, kind in given.items()}


def to_arrow(kind: Wire) -> "pa.DataType":
    """The Arrow type of a type on the wire."""
    pa = load("pyarrow", "a schema")
    word = kind["type"]
    inner = [pa.field(f["name"], to_arrow(f["type"]), f.get("nullable", True)) for f in _in(kind)]
    if word == "fixed_size_list":
        return pa.list_(inner[0], kind["length"])
    if word == "list":
        return pa.list_(inner[0])
    if word == "large_list":
        return pa.large_list(inner[0])
    if word == "struct":
        return pa.struct(inner)
    if word.startswith("fixed_size_list:"):
        _, element, length = word.split(":")
        return pa.list_(to_arrow({"type": element}), int(length))
    if match := re.fullmatch(r"(decimal\d+)\((\d+), ?(-?\d+)\)", word):
        return getattr(pa, match[1])(int(match[2]), int(match[3]))
    if match := re.fullmatch(r"timestamp\[(\w+), ?tz=(.+)\]", word):
        return pa.timestamp(match[1], tz=match[2])
    plain = {"timestamp": "timestamp[us]", "time32": "time32[ms]", "time64": "time64[us]"}
    return pa.type_for_alias({**plain, "duration": "duration[us]"}.get(word, word))


def to_arrow_schema(fields: Mapping[str, Wire]) -> "pa.Schema":
    pa = load("pyarrow", "a schema")
    return pa.schema([pa.field(name, to_arrow(kind)) for name, kind in fields.items()])


def _read_annotation(given: Any, what: str) -> Wire:
    plain = without_none(given)
    if plain is not given:
        return read_type(plain, what)
    origin, arguments = typing.get_origin(given), typing.get_args(given)
    if origin is typing.Annotated:
        # `Annotated[list[float], vector(256)]` says more than the list does.
        told = next((each for each in arguments[1:] if isinstance(each, dict | str)), arguments[0])
        return read_type(told, what)
    if origin in LISTS and arguments:
        return {"type": "list", "fields": [_item(arguments[0], what)]}
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return {"type": "list", "fields": [_item(arguments[0], what)]}
    if origin is typing.Literal and len(kinds := {type(each) for each in arguments}) == 1:
        return read_type(kinds.pop(), what)
    if is_record(given):
        fields = read_fields(given, what)
        inner = [{"name": n, "type": kind, "nullable": True} for n, kind in fields.items()]
        return {"type": "struct", "fields": inner}
    if hasattr(given, "__supertype__"):
        return read_type(given.__supertype__, what)
    if isinstance(given, type) and given.__module__ == "numpy" and given.__name__ in NUMPY:
        return {"type": given.__name__.rstrip("_")}
    if isinstance(given, type) and issubclass(given, enum.Enum):
        try:
            return read_type(read_enum(given), what)
        except NoSuchValues as error:
            raise _unknown(what, given, f": {error}") from error
    raise _unknown(what, given)


def _list_fields(given: type, what: str) -> dict[str, Any]:
    try:
        # One that is inside itself would have no end.
        list(list_classes(given))
        return list_fields(given)
    except NoSuchValues as error:
        raise _unknown(what, given, f": {error}") from error


def _from_arrow(given: "pa.DataType") -> Wire:
    kinds = load("pyarrow.types", "an Arrow type")
    if kinds.is_fixed_size_list(given):
        return {
            "type": "fixed_size_list",
            "fields": [_field(given.value_field)],
            "length": given.list_size,
        }
    if kinds.is_list(given) or kinds.is_large_list(given):
        word = "list" if kinds.is_list(given) else "large_list"
        return {"type": word, "fields": [_field(given.value_field)]}
    if kinds.is_struct(given):
        return {"type": "struct", "fields": [_field(each) for each in given]}
    if kinds.is_fixed_size_binary(given):
        return {"type": "fixed_size_binary", "length": given.byte_width}
    if kinds.is_map(given) or kinds.is_dictionary(given) or kinds.is_null(given):
        raise _unknown("the type", given)
    return {"type": ARROW_WORDS.get(str(given), str(given))}


def _field(field: "pa.Field[Any]") -> dict[str, Any]:
    return {"name": field.name, "type": _from_arrow(field.type), "nullable": field.nullable}


def _item(element: Any, what: str = "the element") -> dict[str, Any]:
    return {"name": "item", "type": read_type(element, what), "nullable": True}


def _in(kind: Wire) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = kind.get("fields") or []
    return fields


def _unknown(what: str, given: Any, why: str = "") -> InvalidRequest:
    return InvalidRequest(
        f"{what} is {show(given)}, which is no type of a column{why}",
        detail="use a Python type (int, str, list[float], datetime, Decimal, an Enum, a dataclass, "
        'a TypedDict), a word such as "int32", penstock.vector(256), or an Arrow type',
    )
