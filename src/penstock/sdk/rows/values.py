"""Rows as Python has them: dicts, columns by name, arrays of numbers, and iterators."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.sdk.rows.doors import np, pa
from penstock.sdk.rows.types import Place, check_names, made, to_batch

if TYPE_CHECKING:
    import pyarrow

# How many rows of an iterator become a batch, and how many of them tell the types of its columns.
STEP_ROWS = 8_192
# The column of vectors that are given alone.
VECTOR = "vector"

Types = Mapping[str, Any]


def from_dicts(rows: Sequence[Mapping[str, Any]], types: Types) -> "pyarrow.Table":
    """Rows that are all there; their columns are those of all of them."""
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    return from_columns({name: [row.get(name) for row in rows] for name in names}, types)


def from_columns(columns: Mapping[str, Any], types: Types) -> "pyarrow.Table":
    """Columns by name; one of two dimensions has vectors."""
    names = [str(name) for name in columns]
    check_names(names)
    made_of = [
        _to_column(values, name, types.get(name), Place())
        for name, values in zip(names, columns.values(), strict=True)
    ]
    for name, column in zip(names, made_of, strict=True):
        if len(column) != len(made_of[0]):
            raise SchemaMismatch(
                f"column {name!r} has {len(column)} values, and {names[0]!r} has {len(made_of[0])}",
                detail="give each column a value for each row",
            )
    return pa.table(dict(zip(names, made_of, strict=True)))


def from_vectors(array: Any, types: Types) -> "pyarrow.Table":
    """An array of two dimensions: a vector for each row."""
    if array.ndim != 2:
        raise InvalidRequest(
            f"the array has the shape {array.shape}, which does not tell its columns",
            detail="name them: {'column': array}; one of two dimensions has vectors",
        )
    return from_columns({VECTOR: array}, types)


def from_iterator(
    items: Iterable[Any], types: Types, read: Any
) -> "tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]":
    """Rows one by one, as dicts, or tables and batches; the first ones tell the columns.

    `read` makes a table of anything else that holds rows.
    """
    left = iter(items)
    first = list(islice(left, 1))
    if not first:
        return pa.schema([(name, kind) for name, kind in types.items()]), iter(())
    if isinstance(first[0], Mapping) and not _holds_columns(first[0]):
        return _from_rows(chain(first, left), types)
    head = read(first[0])

    def batches() -> Iterator[Any]:
        yield from head.to_batches()
        for item in left:
            yield from read(item).to_batches()

    return head.schema, batches()


def _from_rows(
    rows: Iterator[Any], types: Types
) -> "tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]":
    head = _take(rows, Place())
    table = from_dicts(head, types)
    schema = table.schema
    known = set(schema.names)

    def batches() -> Iterator[Any]:
        yield from table.combine_chunks().to_batches()
        place = Place().after(len(head))
        while step := _take(rows, place):
            for number, row in enumerate(step):
                if not row.keys() <= known:
                    strange = next(name for name in row if name not in known)
                    raise SchemaMismatch(
                        f"{place.at(number)}, has column {strange!r}, which none of the first "
                        f"{len(head):,} has",
                        detail="name all columns in schema={'column': type}",
                    )
            columns = [
                _to_column([row.get(field.name) for row in step], field.name, field.type, place)
                for field in schema
            ]
            yield to_batch(columns, schema)
            place = place.after(len(step))

    return schema, batches()


def _take(rows: Iterator[Any], place: Place) -> list[Mapping[str, Any]]:
    step = list(islice(rows, STEP_ROWS))
    for number, row in enumerate(step):
        if not isinstance(row, Mapping):
            raise InvalidRequest(
                f"{place.at(number)}, is of {type(row).__name__}, and the first is a dict",
                detail="yield a dict for each row, or Arrow batches only",
            )
    return step


def _holds_columns(item: Mapping[str, Any]) -> bool:
    """Whether a dict has columns, of which iterators may give batches too, and no row."""
    arrays = (pa.Array, pa.ChunkedArray)
    return bool(item) and all(isinstance(value, arrays) for value in item.values())


def _to_column(values: Any, name: str, kind: Any, place: Place) -> Any:
    """A column of values, of a type if one is wanted."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        # A column of pandas, Polars or another library.
        return (
            pa.chunked_array(values) if hasattr(values, "__arrow_c_stream__") else pa.array(values)
        )
    if getattr(values, "ndim", 1) > 1:
        return _to_vectors(values, name)
    if not isinstance(values, Sequence) and not hasattr(values, "__array__"):
        raise InvalidRequest(
            f"column {name!r} is of {type(values).__name__}",
            detail="give a list, an array, or a column of a DataFrame",
        )
    if isinstance(values, str | bytes):
        raise InvalidRequest(
            f"column {name!r} is one text", detail="give a list with a value for each row"
        )

    def make(start: int, count: int) -> Any:
        part = values[start : start + count]
        if kind is None:
            return pa.array(part)
        try:
            return pa.array(part, kind)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            # Arrow casts some values that it does not take as such.
            inferred = pa.array(part)
            if inferred.type == kind:
                raise
            try:
                return inferred.cast(kind)
            except pa.ArrowException:
                pass
            raise

    return made(make, len(values), name, place)


def _to_vectors(array: Any, name: str) -> Any:
    found = np.asarray(array)
    if found.ndim != 2 or not found.shape[1] or found.dtype.kind not in "fiu":
        raise InvalidRequest(
            f"column {name!r} is an array of shape {found.shape} of {found.dtype}",
            detail="give vectors of numbers as an array of two dimensions",
        )
    flat = pa.array(np.ascontiguousarray(found).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, found.shape[1])
