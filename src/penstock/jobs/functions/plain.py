"""Objects that functions return, as what Arrow takes: enums, dataclasses, UUIDs."""

import dataclasses
import enum
import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as t


def to_plain(value: Any, kind: pa.DataType) -> Any:
    """A value of a column of this type; what is none of these objects stays as it is."""
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, uuid.UUID):
        return value.bytes if t.is_binary(kind) or t.is_fixed_size_binary(kind) else str(value)
    if t.is_struct(kind):
        row = to_row(value)
        if isinstance(row, Mapping):
            return {f.name: to_plain(row[f.name], f.type) for f in kind if f.name in row}
    elif is_list(kind) and isinstance(value, list | tuple):
        return [to_plain(each, kind.value_type) for each in value]
    return value


def to_row(value: Any) -> Any:
    """A dataclass as a dict of its fields."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return value


def is_list(kind: pa.DataType) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def has_decimals(kind: pa.DataType) -> bool:
    """Whether there are decimals in it."""
    if is_list(kind):
        return has_decimals(kind.value_type)
    if t.is_struct(kind):
        return any(has_decimals(field.type) for field in kind)
    return bool(t.is_decimal(kind))
