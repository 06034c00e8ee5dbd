"""Convert functions' results to Arrow arrays of the columns' types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as t

from penstock.jobs.functions.plain import has_decimals, is_list, to_plain, to_row
from penstock.jobs.functions.redaction import hide

MAX_SHOWN = 80


class BadResult(Exception):
    """What a function returned is not what its columns hold."""


class WrongLength(BadResult):
    """A function of whole batches returned more or fewer values than it was given rows."""


# What making an array of values may raise.
WRONG = (pa.ArrowException, TypeError, ValueError, OverflowError, BadResult)


def to_arrays(values: list[Any], fields: Sequence[str], kinds: pa.Schema) -> list[pa.Array]:
    """The results of single rows, as one array for each column."""
    if len(kinds) == 1 and not _are_parts(values, fields[0], kinds.field(0).type):
        return [from_list(values, kinds.field(0))]
    parts: list[list[Any]] = [[] for _ in fields]
    for value in values:
        for part, item in zip(parts, _split_row(value, fields, kinds), strict=True):
            part.append(item)
    return [from_list(part, field) for part, field in zip(parts, kinds, strict=True)]


def split_result(result: Any, fields: Sequence[str], kinds: pa.Schema) -> list[Any]:
    """The parts of a whole batch's result, one for each column."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.RecordBatch | pa.Table):
        parts = {name: result.column(name) for name in result.schema.names}
    elif len(kinds) == 1:
        return [result]
    elif isinstance(result, pa.StructArray):
        # Nulls of the struct are nulls of its fields.
        parts = dict(zip(result.type.names, result.flatten(), strict=True))
    elif isinstance(result, dict):
        parts = result
    elif isinstance(result, tuple | list) and len(result) == len(kinds):
        return list(result)
    else:
        raise BadResult(
            f"returned {_show_type(result)}, and {len(kinds)} columns need a RecordBatch or a "
            f"StructArray with the fields {', '.join(fields)}"
        )
    if len(kinds) == 1 and fields[0] not in parts:
        return [_only(parts, kinds)]
    missing = [name for name in fields if name not in parts]
    if missing:
        raise BadResult(
            f"returned the fields {', '.join(parts)}, and {', '.join(missing)} is missing"
        )
    return [parts[name] for name in fields]


def to_array(result: Any, field: pa.Field, rows: int) -> pa.Array:
    """A batch's result for one column, checked and cast."""
    if isinstance(result, pa.ChunkedArray):
        result = result.combine_chunks()
    if isinstance(result, pa.Array):
        array = result
    elif isinstance(result, np.ndarray) and result.ndim == 2:
        array = _from_matrix(result, field)
    elif isinstance(result, np.ndarray) and result.ndim == 1 and result.dtype != object:
        array = pa.array(result)
    elif isinstance(result, list | tuple | np.ndarray):
        array = from_list(list(result), field)
    elif type(result).__module__.split(".")[0] == "pandas":
        array = pa.Array.from_pandas(result)
    else:
        raise BadResult(
            f"returned {_show_type(result)} for column {field.name}, and a pyarrow Array of "
            f"{field.type} is expected"
        )
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if len(array) != rows:
        raise WrongLength(
            f"returned {len(array)} values for column {field.name}, and was given {rows} rows"
        )
    return _cast(array, field)


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        made = array.cast(field.type)
        # By itself pyarrow would wrap digits around that a decimal has no room for.
        is_exact = has_decimals(array.type) or t.is_integer(array.type)
        if is_exact and has_decimals(field.type) and not made.cast(array.type).equals(array):
            raise pa.ArrowInvalid("a decimal does not fit")
        return made
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise BadResult(
            f"returned {array.type} for column {field.name}, which is {field.type}: {_first(error)}"
        ) from error


def from_list(values: list[Any], field: pa.Field) -> pa.Array:
    """The values of some rows as an array of the column's type."""
    try:
        return _from_list(values, field)
    except WRONG as error:
        try:
            return _from_objects([to_plain(value, field.type) for value in values], field)
        except WRONG:
            shown = f"{show(values[0])} " if len(values) == 1 else ""
            raise BadResult(
                f"returned {shown}for column {field.name}, which is {field.type}: {_first(error)}"
            ) from error


def _from_list(values: list[Any], field: pa.Field) -> pa.Array:
    kind = field.type
    if pa.types.is_fixed_size_list(kind) and values and isinstance(values[0], np.ndarray):
        if (stacked := _stack(values)) is not None:
            return _from_matrix(stacked, field)
        values = [value.tolist() if isinstance(value, np.ndarray) else value for value in values]
    _refuse_texts(values, field)
    # By itself pyarrow would cut the fractions of numbers.
    return _cast_alike(pa.array(values), field) if _is_whole(kind) else pa.array(values, kind)


def _from_objects(values: list[Any], field: pa.Field) -> pa.Array:
    """Of what were enums, dataclasses and the like, or of numbers that pyarrow takes only for
    their own type."""
    try:
        return _from_list(values, field)
    except WRONG:
        return _cast_alike(pa.array(values), field)


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are whole numbers, or lists of such."""
    while is_list(kind):
        kind = kind.value_type
    return bool(t.is_integer(kind))


def _refuse_texts(values: list[Any], field: pa.Field) -> None:
    """A text is no list of its characters."""
    kind = field.type
    if is_list(kind):
        for value in values:
            if isinstance(value, str | bytes):
                raise BadResult(f"a {type(value).__name__} is not a list")


def _cast_alike(array: pa.Array, field: pa.Field) -> pa.Array:
    """Cast between types of one sort: a text is no number, and a number no truth."""

    def sort(kind: pa.DataType) -> str:
        if t.is_boolean(kind):
            return "boolean"
        if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
            return "number"
        is_text = t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind)
        return "text" if is_text else "other"

    found, wanted = sort(array.type), sort(field.type)
    if not t.is_null(array.type) and found != wanted and "other" not in (found, wanted):
        raise BadResult(f"{array.type} is not {field.type}")
    return _cast(array, field)


def _stack(values: list[Any]) -> Any:
    try:
        stacked = np.stack(values)
    except (ValueError, TypeError):
        return None
    return stacked if stacked.ndim == 2 and stacked.dtype != object else None


def _from_matrix(matrix: Any, field: pa.Field) -> pa.Array:
    """The rows of a matrix as lists; vectors are made without a look at each."""
    kind = field.type
    if not pa.types.is_fixed_size_list(kind):
        return from_list([row.tolist() for row in matrix], field)
    if matrix.shape[1] != kind.list_size:
        raise BadResult(
            f"returned vectors of {matrix.shape[1]} for column {field.name}, which is {kind}"
        )
    items = pa.array(np.ascontiguousarray(matrix).reshape(-1))
    items = _cast(items, pa.field(field.name, kind.value_type))
    return pa.FixedSizeListArray.from_arrays(items, type=kind)


def _are_parts(values: list[Any], name: str, kind: pa.DataType) -> bool:
    """Whether the only column is one field of what the function returns."""
    if not name or (t.is_struct(kind) and kind.get_field_index(name) >= 0):
        return False
    rows = [to_row(value) for value in values if value is not None]
    return bool(rows) and all(isinstance(row, dict) and name in row for row in rows)


def _split_row(value: Any, fields: Sequence[str], kinds: pa.Schema) -> Sequence[Any]:
    if value is None:
        return [None] * len(fields)
    value = to_row(value)
    if isinstance(value, dict):
        missing = [name for name in fields if name not in value]
        if not missing:
            return [value[name] for name in fields]
    elif isinstance(value, tuple | list) and len(value) == len(fields):
        return value
    raise BadResult(
        f"returned {show(value)}, and a dict with the fields {', '.join(fields)} is expected"
    )


def _only(parts: dict[str, Any], kinds: pa.Schema) -> Any:
    if len(parts) == 1:
        return next(iter(parts.values()))
    if kinds.names[0] in parts:
        return parts[kinds.names[0]]
    raise BadResult(f"returned the fields {', '.join(parts)}, and none of them is {kinds.names[0]}")


def show(value: Any) -> str:
    return hide(repr(value))[:MAX_SHOWN]


def _show_type(value: Any) -> str:
    kind = type(value)
    return f"a {kind.__module__}.{kind.__qualname__}".replace("a builtins.", "a ")


def _first(error: BaseException) -> str:
    return (hide(str(error)).splitlines() or [type(error).__name__])[0][:200]
