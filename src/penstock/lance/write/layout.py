"""Convert Arrow batches to a layout that Lance accepts: plain types, in aligned memory.

Clients send string views (Polars), list views, run-end encoded columns and narrow decimals. Lance
has no such columns, or returns others; the values are the same in plain layout. Also, Arrow's
streams align buffers to 8 bytes, and Lance panics over decimals that are not aligned to 16.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from penstock.errors import InvalidRequest

Type = Any
Array = Any


# The widest value that Lance reads from memory at once.
ALIGNED_BYTES = 16


def to_stored_schema(schema: pa.Schema) -> pa.Schema:
    """The schema as Lance stores it, the same object if nothing changes; refuses what it can't."""
    for field in schema:
        if (obstacle := _find_obstacle(field.type)) is not None:
            raise InvalidRequest(
                f"column {field.name!r} cannot have the type {field.type}: {obstacle[0]}",
                detail=obstacle[1],
            )
    if all(_is_plain(field.type) for field in schema):
        return schema
    return pa.schema([_to_plain_field(field) for field in schema], schema.metadata)


def to_stored_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the types of such a schema, for Lance."""
    return align_batch(convert_batch(batch, schema))


def convert_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in another layout with the same values; columns that fit are not copied."""
    if batch.schema is schema or batch.schema.equals(schema):
        return batch
    columns = [
        _convert(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def to_values_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with values in place of dictionaries, the same object when there is none."""
    if not any(_has_dictionary(field.type) for field in schema):
        return schema
    fields = [field.with_type(_to_values_type(field.type)) for field in schema]
    return pa.schema(fields, schema.metadata)


def fit_schema(rows: pa.Schema, table: pa.Schema) -> pa.Schema:
    """The rows' schema, with dictionaries where the table has them and the rows bring values."""
    for place, field in enumerate(rows):
        if table.get_field_index(field.name) < 0:
            continue
        wanted = table.field(field.name).type
        if _has_dictionary(wanted) and field.type.equals(_to_values_type(wanted)):
            rows = rows.set(place, field.with_type(wanted))
    return rows


def align_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with wide values copied to aligned memory if necessary."""
    if all(_is_aligned(column) for column in batch.columns):
        return batch
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    options = pa.ipc.IpcReadOptions(ensure_alignment=pa.ipc.Alignment.At64Byte)
    with pa.ipc.open_stream(sink.getvalue(), options=options) as reader:
        return reader.read_next_batch().replace_schema_metadata(batch.schema.metadata)


def _is_aligned(array: Array) -> bool:
    if not _has_wide(array.type):
        return True
    return all(buffer is None or buffer.address % ALIGNED_BYTES == 0 for buffer in array.buffers())


def _has_wide(kind: Type) -> bool:
    if t.is_dictionary(kind):
        return _has_wide(kind.value_type)
    if t.is_nested(kind):
        return any(_has_wide(kind.field(i).type) for i in range(kind.num_fields))
    return bool(t.is_decimal(kind))


def _find_obstacle(kind: Type) -> tuple[str, str] | None:
    """Why Lance can't store a type, and what to do instead; None when it can."""
    if t.is_interval(kind):
        return "Lance stores no intervals", "send a duration, or months, days and nanoseconds"
    if t.is_union(kind):
        return "Lance stores no unions", "send a struct with a field for each case"
    if t.is_fixed_size_list(kind) and not _is_fixed(kind.value_type):
        return (
            "Lance stores lists of a fixed size of numbers, booleans, times and such lists only",
            f"send it as {pa.list_(kind.value_type)}",
        )
    if t.is_dictionary(kind) or t.is_run_end_encoded(kind):
        return _find_obstacle(kind.value_type)
    inner = (kind.field(i).type for i in range(kind.num_fields)) if t.is_nested(kind) else ()
    return next((found for each in inner if (found := _find_obstacle(each)) is not None), None)


def _is_fixed(kind: Type) -> bool:
    if t.is_fixed_size_list(kind):
        return _is_fixed(kind.value_type)
    return bool(t.is_primitive(kind) or t.is_decimal(kind) or t.is_fixed_size_binary(kind))


def to_plain_type(kind: Type) -> Type:
    """The type in which Lance stores the values of a type; an equal one when it is plain."""
    return _rebuild(kind, keep_dictionaries=True)


def _to_values_type(kind: Type) -> Type:
    return _rebuild(kind, keep_dictionaries=False)


def _rebuild(kind: Type, *, keep_dictionaries: bool) -> Type:
    """A type rebuilt from the innermost types outwards."""

    def again(inner: Type) -> Type:
        return _rebuild(inner, keep_dictionaries=keep_dictionaries)

    def field(inner: Any) -> Any:
        return inner.with_type(again(inner.type))

    if t.is_string_view(kind):
        return pa.string()
    if t.is_binary_view(kind):
        return pa.binary()
    if t.is_decimal32(kind) or t.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if t.is_run_end_encoded(kind) or (t.is_dictionary(kind) and not keep_dictionaries):
        return again(kind.value_type)
    if t.is_dictionary(kind):
        return pa.dictionary(kind.index_type, again(kind.value_type), kind.ordered)
    if t.is_struct(kind):
        return pa.struct([field(each) for each in kind])
    if t.is_map(kind):
        return pa.map_(field(kind.key_field), field(kind.item_field), kind.keys_sorted)
    if t.is_list(kind) or t.is_list_view(kind):
        return pa.list_(field(kind.value_field))
    if t.is_large_list(kind) or t.is_large_list_view(kind):
        return pa.large_list(field(kind.value_field))
    if t.is_fixed_size_list(kind):
        return pa.list_(field(kind.value_field), kind.list_size)
    return kind


def _to_plain_field(field: Any) -> Any:
    return field.with_type(to_plain_type(field.type))


def _has_dictionary(kind: Type) -> bool:
    if not t.is_nested(kind):
        return bool(t.is_dictionary(kind))
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def _is_plain(kind: Type) -> bool:
    if not t.is_nested(kind) and not _may_be_other(kind):
        return True
    return bool(kind.equals(to_plain_type(kind)))


def _may_be_other(kind: Type) -> bool:
    return bool(
        t.is_decimal(kind)
        or t.is_dictionary(kind)
        or t.is_run_end_encoded(kind)
        or t.is_string_view(kind)
        or t.is_binary_view(kind)
    )


def _convert(array: Array, target: Type) -> Array:
    """The same values as an array of the plain type; Arrow's own casts break list views."""
    kind = array.type
    if kind.equals(target):
        return array
    if t.is_run_end_encoded(kind):
        return _convert(pc.run_end_decode(array), target)
    if t.is_dictionary(target) and not t.is_dictionary(kind):
        return array.dictionary_encode().cast(target)
    if t.is_dictionary(kind) and not t.is_dictionary(target):
        return _convert(array.dictionary_decode(), target)
    if t.is_dictionary(kind):
        values = _convert(array.dictionary, target.value_type)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=kind.ordered)
    if t.is_struct(kind):
        children = [_convert(array.field(i), field.type) for i, field in enumerate(target)]
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if t.is_map(kind):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        keys = _convert(array.keys[first:last], target.key_type)
        items = _convert(array.items[first:last], target.item_type)
        offsets = pc.subtract(array.offsets, first)
        return pa.MapArray.from_arrays(offsets, keys, items, type=target, mask=array.is_null())
    if t.is_fixed_size_list(kind):
        size = kind.list_size
        inside = array.values[array.offset * size : (array.offset + len(array)) * size]
        values = _convert(inside, target.value_type)
        return pa.FixedSizeListArray.from_arrays(values, type=target, mask=array.is_null())
    if t.is_nested(kind):
        return _convert_list(array, target)
    return array.cast(target)


def _convert_list(array: Array, target: Type) -> Array:
    """A list or list view as a list, with only the values that its lists use."""
    is_large = t.is_large_list(target)
    make = pa.LargeListArray if is_large else pa.ListArray
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), ends])
    offsets = offsets.cast(pa.int64() if is_large else pa.int32())
    values = _convert(array.flatten(), target.value_type)
    return make.from_arrays(offsets, values, type=target, mask=array.is_null())
