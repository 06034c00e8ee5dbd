"""Values of any type from JSON: what neither CSV nor Arrow's own reader of JSON has a form for.

Bytes are in base64, times and durations in ISO 8601, as `penstock export` writes them.
"""

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import SchemaMismatch
from penstock.sdk.rows.doors import pa
from penstock.sdk.rows.types import REMEDY, Place, cast, made

if TYPE_CHECKING:
    import pyarrow


def from_text(texts: Any, field: "pyarrow.Field[Any]", place: Place) -> "pyarrow.Array[Any]":
    """Values that were read as texts: nested ones are JSON, others as they are written alone."""
    kind = field.type
    if not (pa.types.is_nested(kind) or is_bytes(kind) or _is_duration(kind)):
        return cast(texts, field, place)
    read = python_type(kind)
    decode: Callable[[str], Any] = (
        msgspec.json.Decoder(read).decode
        if pa.types.is_nested(kind)
        else partial(msgspec.convert, type=read)
    )
    values = []
    for row, text in enumerate(texts.to_pylist()):
        try:
            values.append(None if text is None else to_arrow_value(decode(text), kind))
        except msgspec.MsgspecError as error:
            raise SchemaMismatch(
                f"column {field.name!r} of {place.at(row)}: {text[:60]!r} is no {kind}: {error}",
                detail=REMEDY,
            ) from error

    def make(start: int, count: int) -> Any:
        return pa.array(values[start : start + count], kind)

    return made(make, len(values), field.name, place)


def python_type(kind: "pyarrow.DataType") -> Any:
    """The type by which msgspec reads values of a type; each may be null."""
    types = pa.types
    if types.is_dictionary(kind):
        return python_type(kind.value_type)
    if types.is_map(kind):
        return dict[str, python_type(kind.item_type)] | None  # type: ignore[misc]
    if types.is_struct(kind):
        fields = {field.name: python_type(field.type) for field in kind}
        return (
            msgspec.defstruct(
                "Value",
                [(f"f{n}", fields[name], None) for n, name in enumerate(fields)],
                rename=dict(zip((f"f{n}" for n in range(len(fields))), fields, strict=True)),
                forbid_unknown_fields=True,
            )
            | None
        )
    if types.is_nested(kind):
        return list[python_type(kind.value_type)] | None  # type: ignore[misc]
    plain = (
        (types.is_boolean, bool),
        (types.is_integer, int),
        (types.is_floating, float),
        (is_bytes, bytes),
        (types.is_decimal, Decimal),
        (types.is_date, datetime.date),
        (types.is_time, datetime.time),
        (types.is_timestamp, datetime.datetime),
        (_is_duration, datetime.timedelta),
        (types.is_null, None),
    )
    return next((found for is_it, found in plain if is_it(kind)), str) | None  # type: ignore[operator]


def to_arrow_value(value: Any, kind: "pyarrow.DataType") -> Any:
    """A value that msgspec read, as Arrow takes it."""
    types = pa.types
    if value is None:
        return None
    if types.is_map(kind):
        return [(key, to_arrow_value(each, kind.item_type)) for key, each in value.items()]
    if types.is_struct(kind):
        return {
            field.name: to_arrow_value(getattr(value, f"f{n}"), field.type)
            for n, field in enumerate(kind)
        }
    if types.is_nested(kind) and not types.is_dictionary(kind):
        return [to_arrow_value(each, kind.value_type) for each in value]
    return value


def is_bytes(kind: "pyarrow.DataType") -> bool:
    types = pa.types
    return any(
        is_it(kind)
        for is_it in (
            *(types.is_binary, types.is_large_binary, types.is_fixed_size_binary),
            types.is_binary_view,
        )
    )


def _is_duration(kind: "pyarrow.DataType") -> bool:
    return bool(pa.types.is_duration(kind))
