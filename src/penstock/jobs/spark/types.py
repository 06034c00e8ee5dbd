"""Convert between Arrow's types and Spark's, for rows on their way into Spark and out of it.

Spark has no unsigned numbers, half floats, dictionaries, fixed sizes or large offsets. Its
substitutes hold every value, except timestamps and durations in nanoseconds: these are rounded down
to microseconds.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from penstock.errors import InvalidRequest, SchemaMismatch

UTC = "UTC"
# The largest precision of Spark's decimals.
MAX_DIGITS = 38
# By Arrow's type after `to_spark_arrow`.
WORDS = {
    "null": "void",
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "binary",
    "date32[day]": "date",
    "time64[ns]": "time(6)",
    "timestamp[us]": "timestamp_ntz",
    f"timestamp[us, tz={UTC}]": "timestamp",
    "duration[us]": "interval day to second",
}


def to_spark_schema(schema: "pa.Schema") -> str:
    """The columns as Spark DDL; all of them may be null."""
    return ", ".join(f"{quote(field.name)} {to_spark_type(field)}" for field in schema)


def to_spark_type(field: "pa.Field[Any]") -> str:
    """A column's type in Spark's words."""
    return _show(_to_spark(field.type, field.name))


def to_spark_arrow(schema: "pa.Schema") -> "pa.Schema":
    """The schema of the batches that Spark gets instead of those of `schema`."""
    return pa.schema([(field.name, _to_spark(field.type, field.name)) for field in schema])


def cast_in(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """Rows of a Lance table, in Spark's form."""
    schema = to_spark_arrow(batch.schema)
    columns = zip(batch.columns, schema, strict=True)
    return pa.record_batch(
        [_convert(column, field.type) for column, field in columns], schema=schema
    )


def cast_out(batch: "pa.RecordBatch", wanted: "pa.Schema") -> "pa.RecordBatch":
    """Rows from Spark as columns of a Lance table, matched by name.

    Raises SchemaMismatch naming the column, when a value does not fit.
    """
    columns = []
    for field in wanted:
        at = batch.schema.get_all_field_indices(field.name)
        if len(at) != 1:
            raise SchemaMismatch(
                f"the query gives {len(at)} columns {field.name}, and the view has one",
                detail="give each output of the query the name of one of the view's columns",
            )
        columns.append(fit_column(batch.column(at[0]), field))
    return pa.record_batch(columns, schema=wanted)


def quote(name: str) -> str:
    """A name quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"


def fit_column(column: "pa.Array", field: "pa.Field[Any]") -> "pa.Array":
    """The values in a column's type; raises SchemaMismatch when one does not fit."""
    try:
        found = _convert(column, field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise SchemaMismatch(
            f"column {field.name} of the view is {field.type}, and what the query gives does not "
            f"fit: {str(error).splitlines()[0][:300]}",
            detail=f"cast {field.name} in the query, or give the view another output_schema",
        ) from error
    if not field.nullable and found.null_count:
        raise SchemaMismatch(
            f"column {field.name} of the view may not be null, and the query gives nulls",
            detail=f"filter them out, or declare {field.name} nullable in output_schema",
        )
    return found


# Types -------------------------------------------------------------------------------------------


def _to_spark(given: "pa.DataType", name: str) -> "pa.DataType":
    if kinds.is_dictionary(given) or kinds.is_run_end_encoded(given):
        return _to_spark(given.value_type, name)
    if isinstance(given, pa.BaseExtensionType):
        return _to_spark(given.storage_type, name)
    if _is_list(given):
        return pa.list_(pa.field("element", _to_spark(given.value_type, name)))
    if kinds.is_struct(given):
        return pa.struct([(field.name, _to_spark(field.type, name)) for field in given])
    if kinds.is_map(given):
        return pa.map_(_to_spark(given.key_type, name), _to_spark(given.item_type, name))
    found = _to_spark_decimal(given) if kinds.is_decimal(given) else _to_spark_plain(given)
    if found is None:
        raise InvalidRequest(
            f"Spark has no type for column {name}, which is {given}",
            detail="leave the column out of the query, or read it in Lance's dialect",
        )
    return found


def _to_spark_plain(given: "pa.DataType") -> "pa.DataType | None":
    wider = {
        "uint8": pa.int16(),
        "uint16": pa.int32(),
        "uint32": pa.int64(),
        "uint64": pa.decimal128(20, 0),
        "halffloat": pa.float32(),
        "large_string": pa.string(),
        "string_view": pa.string(),
        "large_binary": pa.binary(),
        "binary_view": pa.binary(),
        "date64[ms]": pa.date32(),
    }
    if (found := wider.get(str(given))) is not None:
        return found
    if kinds.is_fixed_size_binary(given):
        return pa.binary()
    if kinds.is_timestamp(given):
        return pa.timestamp("us", UTC if given.tz else None)
    if kinds.is_time(given):
        return pa.time64("ns")
    if kinds.is_duration(given):
        return pa.duration("us")
    return given if str(given) in WORDS else None


def _to_spark_decimal(given: "pa.DataType") -> "pa.DataType | None":
    scale = max(0, given.scale)
    digits = max(given.precision - given.scale + scale, scale)
    return pa.decimal128(digits, scale) if digits <= MAX_DIGITS else None


def _show(given: "pa.DataType") -> str:
    """A type of `_to_spark` in Spark's words."""
    if kinds.is_list(given):
        return f"array<{_show(given.value_type)}>"
    if kinds.is_struct(given):
        return f"struct<{', '.join(f'{quote(f.name)}: {_show(f.type)}' for f in given)}>"
    if kinds.is_map(given):
        return f"map<{_show(given.key_type)}, {_show(given.item_type)}>"
    if kinds.is_decimal(given):
        return f"decimal({given.precision}, {given.scale})"
    return WORDS[str(given)]


def _is_list(given: "pa.DataType") -> bool:
    return bool(
        kinds.is_list(given)
        or kinds.is_large_list(given)
        or kinds.is_fixed_size_list(given)
        or kinds.is_list_view(given)
        or kinds.is_large_list_view(given)
    )


# Values ------------------------------------------------------------------------------------------


def _convert(column: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    """The same values in another type; raises when one does not fit."""
    given = column.type
    if given.equals(wanted):
        return column
    if kinds.is_null(given):
        return pa.nulls(len(column), wanted)
    if isinstance(given, pa.BaseExtensionType):
        return _convert(column.storage, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, _convert(column, wanted.storage_type))
    if kinds.is_dictionary(given):
        return _convert(column.dictionary_decode(), wanted)
    if kinds.is_dictionary(wanted):
        return _convert(column, wanted.value_type).dictionary_encode().cast(wanted)
    if _is_list(given) and _is_list(wanted):
        return _convert_list(column, wanted)
    if kinds.is_struct(given) and kinds.is_struct(wanted):
        return _convert_struct(column, wanted)
    if kinds.is_map(given) and kinds.is_map(wanted):
        return _convert_map(column, wanted)
    return _convert_plain(column, wanted)


def _convert_plain(column: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    given = column.type
    if getattr(given, "unit", "") == "ns" and getattr(wanted, "unit", "") == "us":
        column = _drop_digits(column)
    found = column.cast(wanted)
    if kinds.is_floating(given) and kinds.is_floating(wanted):
        # Arrow turns what is too large for a smaller float into an infinity.
        lost = pc.and_(pc.is_finite(column), pc.invert(pc.is_finite(found)))
        if pc.any(lost).as_py():
            raise ValueError(f"{pc.filter(column, lost)[0]} is too large")
    return found


def _drop_digits(column: "pa.Array") -> "pa.Array":
    """Nanoseconds as whole microseconds."""
    whole = np.asarray(column.cast(pa.int64()).fill_null(0)) // 1000 * 1000
    return pa.array(whole, pa.int64(), mask=np.asarray(column.is_null())).cast(column.type)


def _convert_list(column: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    offsets, values, mask = _open_lists(column, column.type.value_type)
    values = _convert(values, wanted.value_type)
    if not kinds.is_fixed_size_list(wanted):
        made = pa.ListArray.from_arrays(offsets, values, mask=mask)
        return made.cast(wanted)
    size = wanted.list_size
    lengths = column.value_lengths().drop_null().unique().to_pylist()
    if other := [length for length in lengths if length != size]:
        raise ValueError(f"a list of {other[0]} values, where {size} are wanted")
    if mask is not None:
        values = _spread(values, mask, size)
    return pa.FixedSizeListArray.from_arrays(values, type=wanted, mask=mask)


def _convert_map(column: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    entry = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
    offsets, entries, mask = _open_lists(column, entry)
    keys, items = entries.flatten()
    return pa.MapArray.from_arrays(
        offsets,
        _convert(keys, wanted.key_type),
        _convert(items, wanted.item_type),
        type=wanted,
        mask=mask,
    )


def _convert_struct(column: "pa.Array", wanted: "pa.DataType") -> "pa.Array":
    given = column.type
    names = [field.name for field in given]
    if len(names) != wanted.num_fields:
        raise ValueError(f"a struct of {len(names)} fields, where {wanted.num_fields} are wanted")
    if not names:
        return column.cast(wanted)
    by_name = sorted(names) == sorted(field.name for field in wanted)
    parts = column.flatten()
    children = [
        _convert(parts[names.index(field.name) if by_name else number], field.type)
        for number, field in enumerate(wanted)
    ]
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=_nulls(column))


def _open_lists(column: "pa.Array", value: "pa.DataType") -> "tuple[pa.Array, pa.Array, Any]":
    """Where each list begins, the concatenated values, and which lists are null.

    Values hidden by nulls and slices are left out.
    """
    plain = column.cast(pa.list_(value))
    lengths = plain.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return pa.array(offsets, pa.int32()), plain.flatten(), _nulls(column)


def _nulls(column: "pa.Array") -> "pa.Array | None":
    return column.is_null() if column.null_count else None


def _spread(values: "pa.Array", mask: "pa.Array", size: int) -> "pa.Array":
    """Insert places for the values of null lists, as fixed-size lists have them."""
    alive = ~mask.to_numpy(zero_copy_only=False)
    rows = np.cumsum(alive) - 1
    places = (rows[:, None] * size + np.arange(size)).ravel()
    return values.take(pa.array(places, mask=~np.repeat(alive, size)))
