"""The rows that functions of views make: dicts, or tables, become lists of structs."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from itertools import chain, groupby
from types import GeneratorType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.jobs.functions.plain import to_row
from penstock.jobs.functions.results import BadResult, from_list, show, to_array

# The column of what a function of a view made.
MADE = "made"


class Children(NamedTuple):
    """The rows that were made of others, in order."""

    # The place of the row that each was made of, and its number among those.
    parents: Any
    numbers: Any
    rows: pa.RecordBatch


def made_schema(fields: Iterable[pa.Field]) -> pa.Schema:
    """The type of what a function makes of each row that it is given."""
    return pa.schema([pa.field(MADE, pa.list_(pa.struct(list(fields))))])


def flatten(values: pa.RecordBatch) -> Children:
    """The rows in what a function made; a null has none."""
    made: Any = values.column(MADE)
    counts = np.asarray(pc.list_value_length(made).fill_null(0)).astype(np.int64)
    parents = np.repeat(np.arange(len(counts)), counts)
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    numbers = (np.arange(len(parents)) - starts).astype(np.int32)
    structs = made.flatten()
    return Children(parents, numbers, pa.RecordBatch.from_struct_array(structs))


def listed(call: Callable[..., Any]) -> Callable[..., list[Any]]:
    """The same function, which has yielded everything when it returns."""
    return lambda *values: list_rows(call(*values))


def list_rows(found: Any) -> list[Any]:
    """The rows that a function returned: none, one, or all that it yields."""
    # Nearly all are one of these.
    if type(found) is GeneratorType or type(found) is list:
        return list(found)
    if found is None:
        return []
    if isinstance(found, Mapping | pa.Table | pa.RecordBatch) or is_dataclass(found):
        return [found]
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise TypeError(f"returned {show(found)}, and rows are expected, as dicts")
    return list(found)


def to_partitions(column: pa.ListArray) -> list[pa.Table]:
    """The tables that a function of partitions is given, one for each row."""
    return [pa.Table.from_struct_array(each.values) for each in column]


def by_row(found: Sequence[Any], rows: int) -> list[list[Any]]:
    """What a chunker of batches yielded, as a list for each row that it was given."""
    values: list[list[Any]] = [[] for _ in range(rows)]
    for item in found:
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise BadResult(f"yielded {show(item)}, and (row index, dict) is expected")
        try:
            row = operator.index(item[0])
        except TypeError:
            row = -1
        if not 0 <= row < rows:
            raise BadResult(
                f"yielded the row index {show(item[0])}, and was given {rows} rows, counted from 0"
            )
        values[row].append(item[1])
    return values


def rows_to_lists(values: Sequence[Sequence[Any] | None], field: pa.Field) -> pa.Array:
    """What a chunker made of each row, as an array of lists of structs; None is null."""
    made = _from_dicts(list(chain.from_iterable(filter(None, values))), field.type.value_type)
    return _to_lists(made, [None if each is None else len(each) for each in values], field)


def tables_to_lists(values: Sequence[Sequence[Any] | None], field: pa.Field) -> pa.Array:
    """The same of each partition, from which tables may come as well."""
    kind = field.type.value_type
    made = [None if each is None else _from_pieces(each, kind) for each in values]
    whole = pa.concat_arrays([pa.array([], kind), *(each for each in made if each is not None)])
    return _to_lists(whole, [None if each is None else len(each) for each in made], field)


def _to_lists(made: pa.Array, counts: Sequence[int | None], field: pa.Field) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum([count or 0 for count in counts])])
    missing = [count is None for count in counts]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()),
        made,
        type=field.type,
        mask=pa.array(missing) if any(missing) else None,
    )


def _from_pieces(pieces: Sequence[Any], kind: pa.StructType) -> pa.Array:
    made = [pa.array([], kind)]
    for is_table, run in groupby(pieces, lambda each: isinstance(each, pa.Table | pa.RecordBatch)):
        if is_table:
            made += [_from_table(each, kind) for each in run]
        else:
            made.append(_from_dicts(list(run), kind))
    return pa.concat_arrays(made)


def _from_table(table: Any, kind: pa.StructType) -> pa.Array:
    names = table.schema.names
    if missing := [field.name for field in kind if field.name not in names]:
        raise BadResult(
            f"a table that it made has the columns {', '.join(names)}, and no {missing[0]}"
        )
    return _to_structs(
        [to_array(table.column(field.name), field, table.num_rows) for field in kind], kind
    )


def _from_dicts(items: Sequence[Any], kind: pa.StructType) -> pa.Array:
    """Field by field, which takes Arrow a third of the time that it needs dict by dict."""
    try:
        if any(map(is_dataclass, set(map(type, items)))):
            items = [to_row(item) for item in items]
        if not all(issubclass(each, Mapping) for each in set(map(type, items))):
            raise BadResult("a row is expected as a dict")
        return _to_structs(
            [from_list([item[field.name] for item in items], field) for field in kind], kind
        )
    except (BadResult, KeyError) as error:
        raise _first_wrong(items, kind, error) from error


def _first_wrong(items: Sequence[Any], kind: pa.StructType, error: Exception) -> BadResult:
    """Say which of the rows is wrong, and in which field."""
    for number, item in enumerate(items):
        where = f"row {number} of those it made"
        if not isinstance(item, Mapping):
            names = ", ".join(field.name for field in kind)
            return BadResult(
                f"{where} is {show(item)}, and a dict with the fields {names} is expected"
            )
        for field in kind:
            if field.name not in item:
                return BadResult(
                    f"{where} has no field {field.name}, only {', '.join(map(str, item))}"
                )
            try:
                _to_structs([from_list([item[field.name]], field)], pa.struct([field]))
            except BadResult as wrong:
                return BadResult(f"{where}: {wrong}")
    return error if isinstance(error, BadResult) else BadResult(str(error))


def _to_structs(columns: Sequence[pa.Array], kind: pa.StructType) -> pa.Array:
    for column, field in zip(columns, kind, strict=True):
        if isinstance(column, pa.ChunkedArray):
            raise BadResult(f"returned more than 2 GB for column {field.name} at once")
        if column.null_count and not field.nullable:
            raise BadResult(f"returned None for column {field.name}, which is not nullable")
    return pa.StructArray.from_arrays(columns, fields=list(kind))
