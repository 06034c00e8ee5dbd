"""Anything that holds rows, read once as Arrow batches of bounded size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.sdk.rows import values
from penstock.sdk.rows.doors import pa
from penstock.sdk.rows.file_formats import Tell, find_schema, read_batches
from penstock.sdk.rows.files import RowFile, find_files, is_path
from penstock.sdk.rows.types import REMEDY, Place, Schema, choose_types, conform, read_schema

if TYPE_CHECKING:
    import pyarrow

# Arrow's tables, batches, readers and datasets, data frames of any library, dicts by row, columns
# by name, an array of vectors, iterators of any of it, a schema alone, or names of files.
Data: TypeAlias = Any

# What a batch has at most, and what small ones are joined to.
BATCH_ROWS, BATCH_BYTES = 65_536, 8 * 1024 * 1024
# What a dataset reads ahead.
AHEAD: dict[str, Any] = {"batch_size": 16_384, "batch_readahead": 2, "fragment_readahead": 1}
FORMS = (
    "an Arrow table, reader or dataset, a DataFrame, a list of dicts, a dict of columns, a "
    "generator of dicts or batches, a schema, or the paths of CSV, JSON lines or Parquet files"
)


@dataclass(frozen=True)
class Rows:
    """Rows of a schema that can be read, again if `open` may be called again."""

    schema: "pyarrow.Schema"
    open: "Callable[[], Iterator[pyarrow.RecordBatch]]"
    is_repeatable: bool = True

    def reader(self) -> "pyarrow.RecordBatchReader":
        """The rows as pyarrow reads them."""
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())

    def batches(self) -> "Iterator[pyarrow.RecordBatch]":
        """The rows in batches of bounded size."""
        return _resize(self.open(), self.schema)


def open_rows(data: Data, schema: Schema = None, known: "pyarrow.Schema | None" = None) -> Rows:
    """What the data holds. `schema` is the caller's, `known` are the types of the target table."""
    wanted = None if schema is None else read_schema(schema)
    if data is None and wanted is not None:
        return Rows(wanted, lambda: iter(()))
    if is_path(data):
        return open_files(find_files(data), wanted, known)
    found = _open(data, wanted, known)
    types = choose_types(found.schema, wanted, known)

    def conformed() -> "Iterator[pyarrow.RecordBatch]":
        place = Place()
        for batch in found.open():
            yield conform(batch, types, place)
            place = place.after(batch.num_rows)

    return Rows(types, conformed, found.is_repeatable)


def open_files(
    files: Sequence[RowFile],
    schema: Schema = None,
    known: "pyarrow.Schema | None" = None,
    tell: "Callable[[RowFile, int], None] | None" = None,
) -> Rows:
    """The rows of files, one after the other; one without a column of another has nulls there."""
    wanted = None if schema is None else read_schema(schema)
    types = {} if known is None else dict(zip(known.names, known.types, strict=True))
    if wanted is not None:
        types |= dict(zip(wanted.names, wanted.types, strict=True))
    told = pa.schema(list(types.items())) if types else None
    found: pyarrow.Schema | None = None
    for file in files:
        one = find_schema(file, told)
        found = one if found is None else _unify(found, one, file)
    assert found is not None
    chosen = choose_types(found, wanted, known)

    def read() -> "Iterator[pyarrow.RecordBatch]":
        for file in files:
            yield from read_batches(file, chosen, _teller(tell, file))

    return Rows(chosen, read)


def _teller(tell: "Callable[[RowFile, int], None] | None", file: RowFile) -> Tell:
    return (lambda done: None) if tell is None else (lambda done: tell(file, done))


def _unify(one: "pyarrow.Schema", other: "pyarrow.Schema", file: RowFile) -> "pyarrow.Schema":
    try:
        return pa.unify_schemas([one, other], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise SchemaMismatch(
            f"{file.name} has other types than the files before it: {error}",
            detail="say which type the column has, with schema={'column': type}",
        ) from error


def _open(data: Data, wanted: "pyarrow.Schema | None", known: "pyarrow.Schema | None") -> Rows:
    if isinstance(data, pa.RecordBatchReader):
        return Rows(data.schema, lambda: iter(data), is_repeatable=False)
    if isinstance(data, pa.Table):
        return Rows(data.schema, lambda: iter(data.to_batches(BATCH_ROWS)))
    if isinstance(data, pa.RecordBatch):
        return Rows(data.schema, lambda: iter((data,)))
    if hasattr(data, "to_batches") and hasattr(data, "scanner"):
        # A dataset of pyarrow, or of Lance.
        return Rows(data.schema, lambda: iter(data.to_batches(**AHEAD)))
    if hasattr(data, "to_reader") and hasattr(data, "projected_schema"):
        return Rows(data.projected_schema, lambda: iter(data.to_reader()))
    if isinstance(data, pa.Schema):
        return Rows(data, lambda: iter(()))
    types = _types_of(wanted, known)
    if type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "dtypes"):
        return _of_table(_from_pandas(data, types))
    if isinstance(data, Mapping):
        return _of_table(_from_mapping(data, types))
    if isinstance(data, Sequence) and data and all(isinstance(row, Mapping) for row in data):
        return _of_table(values.from_dicts(data, types))
    if isinstance(data, Sequence) and not data:
        return _of_table(values.from_columns({}, types) if known is None else known.empty_table())
    if hasattr(data, "collect") and hasattr(data, "lazy"):
        # Polars' LazyFrame.
        return _open(data.collect(), wanted, known)
    if hasattr(data, "__arrow_c_stream__"):
        return _from_capsule(data)
    if hasattr(data, "__arrow_c_array__"):
        return _open(pa.record_batch(data), wanted, known)
    if hasattr(data, "with_format") and hasattr(data, "iter"):
        # A dataset of Hugging Face, of which a selection has more rows in its files.
        return _from_iterator(data.with_format("arrow").iter(values.STEP_ROWS), types)
    if hasattr(data, "__array__") and hasattr(data, "ndim"):
        return _of_table(values.from_vectors(data, types))
    if hasattr(data, "__arrow_c_schema__"):
        return Rows(pa.schema(data), lambda: iter(()))
    if hasattr(data, "__iter__") and not isinstance(data, str | bytes):
        return _from_iterator(data, types)
    raise InvalidRequest(f"{type(data).__name__} cannot be read as rows", detail=f"give {FORMS}")


def _of_table(table: "pyarrow.Table") -> Rows:
    return Rows(table.schema, lambda: iter(table.to_batches(BATCH_ROWS)))


def _types_of(wanted: "pyarrow.Schema | None", known: "pyarrow.Schema | None") -> dict[str, Any]:
    types = {} if known is None else dict(zip(known.names, known.types, strict=True))
    return types | ({} if wanted is None else dict(zip(wanted.names, wanted.types, strict=True)))


def _from_pandas(frame: Any, types: Mapping[str, Any]) -> "pyarrow.Table":
    names = [str(name) for name in frame.columns]
    fields = [(name, types[name]) for name in names if name in types]
    wanted = pa.schema(fields) if len(fields) == len(names) else None
    try:
        return pa.Table.from_pandas(frame, schema=wanted, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        told = "; ".join(str(part) for part in error.args)
        raise SchemaMismatch(f"the data does not fit: {told}", detail=REMEDY) from error


def _from_mapping(columns: Mapping[str, Any], types: Mapping[str, Any]) -> "pyarrow.Table":
    if strange := [name for name, each in columns.items() if hasattr(each, "with_format")]:
        raise InvalidRequest(
            "the data has several datasets: " + ", ".join(map(str, columns)),
            detail=f"give one of them, as in data[{strange[0]!r}]",
        )
    return values.from_columns(columns, types)


def _from_capsule(data: Any) -> Rows:
    """A data frame or stream of any library, by Arrow's own interface."""
    opened = [pa.RecordBatchReader.from_stream(data)]
    schema = opened[0].schema

    def batches() -> "Iterator[pyarrow.RecordBatch]":
        # A data frame gives another stream each time; a stream does not.
        return iter(opened.pop() if opened else pa.RecordBatchReader.from_stream(data))

    # What has a length is not used up by reading it.
    return Rows(schema, batches, is_repeatable=hasattr(data, "__len__"))


def _from_iterator(items: Any, types: Mapping[str, Any]) -> Rows:
    def read(item: Any) -> "pyarrow.Table":
        try:
            found = _open(item, None, None)
        except InvalidRequest as error:
            raise InvalidRequest(
                f"what the data gives is of {type(item).__name__}, which holds no columns",
                detail="give a dict for each row, or Arrow batches or DataFrames",
            ) from error
        return pa.Table.from_batches(list(found.open()), found.schema)

    schema, batches = values.from_iterator(items, types, read)
    return Rows(schema, lambda: batches, is_repeatable=False)


def _resize(
    batches: "Iterator[pyarrow.RecordBatch]", schema: "pyarrow.Schema"
) -> "Iterator[pyarrow.RecordBatch]":
    """The same rows in batches that are neither small nor large."""
    held: list[Any] = []
    rows = size = 0
    for batch in chain.from_iterable(map(_split, batches)):
        if held and (rows + batch.num_rows > BATCH_ROWS or size + batch.nbytes > BATCH_BYTES):
            yield _join(held, schema)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield _join(held, schema)


def _split(batch: "pyarrow.RecordBatch") -> "Iterator[pyarrow.RecordBatch]":
    size = batch.nbytes
    rows = min(BATCH_ROWS, max(1, batch.num_rows * BATCH_BYTES // max(size, 1)))
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _join(batches: list[Any], schema: "pyarrow.Schema") -> "pyarrow.RecordBatch":
    if len(batches) == 1:
        return batches[0]
    joined = pa.Table.from_batches(batches, schema).combine_chunks().to_batches()
    # Texts of more than 2 GB would stay in pieces, and no batch here is so large.
    return joined[0]
