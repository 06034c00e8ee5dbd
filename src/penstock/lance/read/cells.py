"""Values of rows as JSON for people: whole when small, else their beginning and their size.

A value that JSON has is itself. What was cut, and what JSON has no word for, is an object whose
`kind` says what it is. Everything blocks.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from penstock.lance.read.media import HEAD_BYTES, find_image

MAX_TEXT, MAX_NUMBERS, MAX_ITEMS, MAX_FIELDS, MAX_DEPTH = 500, 64, 20, 50, 6
# What a browser's numbers can hold.
MAX_INTEGER = 2**53 - 1
# How Lance describes a blob in a query: its place, without its bytes.
BLOB_FIELDS = {"kind", "position", "size", "blob_id", "blob_uri"}
OLD_BLOB_FIELDS, OLD_BLOB_MARK = {"position", "size"}, b"lance-encoding:blob"
OUTSIDE = 3
ROW_ID = "_rowid"

Cell = Any
Show = Callable[[Any, int], Cell]


def kind_of(field: "pa.Field[Any]") -> str:
    """The word for a column's values; cells that were cut have the same."""
    if is_blob(field):
        return "bytes"
    return next((name for is_it, name, _ in _KINDS if is_it(_storage(field.type))), "other")


def show_column(field: "pa.Field[Any]", values: Any) -> list[Cell]:
    """The cells of a column."""
    if field.name == ROW_ID:
        # As text, because a browser's numbers can't hold all of them.
        return [None if not each.is_valid else str(each.as_py()) for each in values]
    if is_blob(field):
        return [_show_blob(each) for each in values]
    return [show_cell(each) for each in values]


def is_blob(field: "pa.Field[Any]") -> bool:
    """Whether a query describes a column's values instead of having their bytes."""
    kind = _storage(field.type)
    if not t.is_struct(kind):
        return False
    names = {kind.field(n).name for n in range(kind.num_fields)}
    return names >= BLOB_FIELDS or (
        names == OLD_BLOB_FIELDS and OLD_BLOB_MARK in (field.metadata or {})
    )


def show_cell(value: Any, depth: int = 0) -> Cell:
    """One value as JSON."""
    if isinstance(value, pa.ExtensionScalar):
        value = value.value
    if not value.is_valid:
        return None
    if depth > MAX_DEPTH:
        return _cut({"kind": "other"}, str(value))
    for is_it, _, show in _KINDS:
        if is_it(value.type):
            return show(value, depth)
    return _cut({"kind": "other"}, str(value))


def _show_boolean(value: Any, depth: int) -> Cell:
    return value.as_py()


def _show_integer(value: Any, depth: int) -> Cell:
    found: int = value.as_py()
    if abs(found) <= MAX_INTEGER:
        return found
    return {"kind": "number", "value": str(found)}


def _show_float(value: Any, depth: int) -> Cell:
    return _show_number(_shorten(np.array([value.as_py()], value.type.to_pandas_dtype()))[0])


def _show_number(found: float) -> Cell:
    if np.isfinite(found):
        return found
    word = "NaN" if np.isnan(found) else "Infinity" if found > 0 else "-Infinity"
    return {"kind": "number", "value": word}


def _shorten(numbers: Any) -> list[float]:
    """Numbers with the digits that their type has."""
    return [float(str(each)) for each in numbers]


def _show_text(value: Any, depth: int) -> Cell:
    raw = value.as_buffer()
    # A character has four bytes at most.
    head = raw.slice(0, min(raw.size, (MAX_TEXT + 1) * 4)).to_pybytes()
    text = head.decode(errors="ignore" if len(head) < raw.size else "replace")
    if len(text) <= MAX_TEXT:
        return text
    counted: Any = pc.utf8_length(value)
    return {"kind": "text", "value": text[:MAX_TEXT], "length": counted.as_py()}


def _show_bytes(value: Any, depth: int) -> Cell:
    raw = value.as_buffer()
    media = find_image(raw.slice(0, min(raw.size, HEAD_BYTES)).to_pybytes())
    return {"kind": "bytes", "length": raw.size, "media": media}


def _show_blob(value: Any) -> Cell:
    if isinstance(value, pa.ExtensionScalar):
        value = value.value
    if not value.is_valid:
        return None
    found = value.as_py()
    told = {"kind": "bytes", "length": found["size"] or 0, "media": None, "blob": True}
    return {**told, "outside": True} if found.get("kind") == OUTSIDE else told


def _show_vector(value: Any, depth: int) -> Cell:
    values = value.values
    length = len(values)
    if length > MAX_NUMBERS:
        picked = np.linspace(0, length - 1, MAX_NUMBERS).round().astype(np.int64)
        values = values.take(pa.array(picked))
    if values.null_count:
        return _show_list(value, depth)
    numbers = values.to_numpy(zero_copy_only=False)
    shown = [_show_number(each) for each in _shorten(numbers)]
    return {"kind": "vector", "value": shown, "length": length}


def _show_list(value: Any, depth: int) -> Cell:
    values = value.values
    shown = [show_cell(each, depth + 1) for each in values.slice(0, MAX_ITEMS)]
    return {"kind": "list", "value": shown, "length": len(values)}


def _show_struct(value: Any, depth: int) -> Cell:
    fields = [value.type.field(n).name for n in range(value.type.num_fields)]
    shown = {name: show_cell(value[n], depth + 1) for n, name in enumerate(fields[:MAX_FIELDS])}
    return {"kind": "struct", "value": shown, "length": len(fields)}


def _show_map(value: Any, depth: int) -> Cell:
    pairs = value.values
    shown = [
        [show_cell(each[0], depth + 1), show_cell(each[1], depth + 1)]
        for each in pairs.slice(0, MAX_ITEMS)
    ]
    return {"kind": "map", "value": shown, "length": len(pairs)}


def _show_time(value: Any, depth: int) -> Cell:
    try:
        text: str = value.cast(pa.string()).as_py()
    except pa.ArrowException:
        return str(value.value)
    return text if text.startswith("<") else text.replace(" ", "T", 1)


def _show_duration(value: Any, depth: int) -> Cell:
    return f"{value.value} {value.type.unit}"


def _show_decimal(value: Any, depth: int) -> Cell:
    return str(value.as_py())


def _cut(told: dict[str, Any], text: str) -> Cell:
    return {**told, "value": text[:MAX_TEXT], "length": len(text)}


def _storage(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _is_number(kind: Any) -> bool:
    return bool(t.is_floating(kind))


def _is_text(kind: Any) -> bool:
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _is_bytes(kind: Any) -> bool:
    views = t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind)
    return bool(views or t.is_fixed_size_binary(kind))


def _is_vector(kind: Any) -> bool:
    if not t.is_fixed_size_list(kind):
        return False
    return bool(t.is_floating(kind.value_type) or t.is_integer(kind.value_type))


def _is_list(kind: Any) -> bool:
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def _is_time(kind: Any) -> bool:
    return bool(t.is_timestamp(kind) or t.is_date(kind) or t.is_time(kind))


# Which types are shown how, and what a column of them is called; the first that fits counts.
_KINDS: tuple[tuple[Callable[[Any], bool], str, Show], ...] = (
    (t.is_boolean, "boolean", _show_boolean),
    (t.is_integer, "number", _show_integer),
    (_is_number, "number", _show_float),
    (_is_text, "text", _show_text),
    (t.is_decimal, "number", _show_decimal),
    (_is_time, "time", _show_time),
    (t.is_duration, "time", _show_duration),
    (_is_vector, "vector", _show_vector),
    (t.is_map, "map", _show_map),
    (_is_list, "list", _show_list),
    (t.is_struct, "struct", _show_struct),
    (_is_bytes, "bytes", _show_bytes),
)
