"""Convert data of many kinds to an Arrow stream to send, and answers to Arrow tables."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.wire import Body, Wire
from penstock.sdk.functions.types import read_type, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa

# Arrow, pandas, Polars, dicts by row, columns by name, or paths of Parquet files.
Data: TypeAlias = Any
# A type for each column that needs one, or a whole Arrow schema.
Schema: TypeAlias = Any

BATCH_ROWS = 65_536


def to_stream(data: Data, schema: Schema = None, known: "pa.Schema | None" = None) -> Body:
    """The data as an Arrow stream that can be sent again.

    `schema` is the caller's; `known` are the types of the target table, which the rows adopt. Files
    are sent as they are.
    """
    if is_path(data):
        return _from_parquet(data)
    table = to_table(data, schema, known)
    return lambda: _stream(table.schema, table.to_batches(max_chunksize=BATCH_ROWS))


def to_table(data: Data, schema: Schema = None, known: "pa.Schema | None" = None) -> "pa.Table":
    """The data as one Arrow table."""
    pa = load("pyarrow", "reading and writing rows")
    found = _read(pa, data, known)
    types = {field.name: field.type for field in found.schema}
    for field in known or ():
        # The server accepts the others as they are.
        if field.name in types and _can_cast(pa, types[field.name]):
            types[field.name] = field.type
    if schema is not None:
        wanted = read_schema(schema)
        if missing := [name for name in wanted.names if name not in types]:
            raise SchemaMismatch(
                f"schema has column {missing[0]!r}, and the data does not", detail="leave it out"
            )
        types |= {field.name: field.type for field in wanted}
    return _cast(found, types)


def _read(pa: Any, data: Data, known: "pa.Schema | None") -> "pa.Table":
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return data
    if type(data).__module__.partition(".")[0] == "pandas":
        wanted = _fields_of(pa, list(data.columns), known)
        return _made(pa.Table.from_pandas, data, schema=wanted, preserve_index=False)
    if isinstance(data, Mapping):
        return _from_columns(pa, data, known)
    if isinstance(data, Sequence) and all(isinstance(row, Mapping) for row in data):
        return _from_dicts(pa, data, known)
    if hasattr(data, "collect") and hasattr(data, "lazy"):
        # Polars' LazyFrame.
        return pa.table(data.collect())
    if hasattr(data, "__arrow_c_stream__"):
        return pa.table(data)
    raise InvalidRequest(
        f"{type(data).__name__} cannot be read as rows",
        detail="give an Arrow table, a DataFrame, a list of dicts, a dict of columns, or the paths "
        "of Parquet files",
    )


def ask_rows(wire: Wire, path: str, body: object, timeout: float | None = None) -> "pa.Table":
    """The rows that answer a request."""
    pa = load("pyarrow", "reading and writing rows")
    return pa.ipc.open_file(pa.BufferReader(wire.read_bytes(path, body, timeout))).read_all()


def read_schema(schema: Schema, what: str = "schema") -> "pa.Schema":
    """An Arrow schema, also from a mapping of names to types."""
    pa = load("pyarrow", what)
    if isinstance(schema, pa.Schema):
        return schema
    if not isinstance(schema, Mapping):
        raise InvalidRequest(f"{what} is {schema!r}", detail='write {"column": int}')
    return pa.schema(
        [(name, to_arrow(read_type(kind, f"{what}[{name!r}]"))) for name, kind in schema.items()]
    )


def is_path(data: Data) -> bool:
    if isinstance(data, str | Path):
        return True
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(each, str | Path) for each in data)
    )


def _from_parquet(paths: Any) -> Body:
    """The rows of Parquet files, folders of them, or patterns such as `data/*.parquet`."""
    dataset = load("pyarrow.dataset", "Parquet files")
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    files: list[str] = []
    for each in given:
        found = _expand(Path(each))
        if not found:
            raise InvalidRequest(f"there is no Parquet file at {each}", detail="check the path")
        files += found
    opened = dataset.dataset(files, format="parquet")
    return lambda: _stream(opened.schema, opened.to_batches(batch_size=BATCH_ROWS))


def _expand(path: Path) -> list[str]:
    if path.is_dir():
        return sorted(str(each) for each in path.rglob("*.parquet"))
    if path.exists():
        return [str(path)]
    return sorted(str(each) for each in path.parent.glob(path.name))


def _from_dicts(pa: Any, rows: Sequence[Mapping[str, Any]], known: "pa.Schema | None") -> Any:
    if not rows and known is not None:
        return known.empty_table()
    names = list(dict.fromkeys(str(name) for row in rows for name in row))
    wanted = _fields_of(pa, names, known)
    if wanted is not None:
        return _made(pa.Table.from_pylist, rows, schema=wanted)
    return _from_columns(pa, {name: [row.get(name) for row in rows] for name in names}, None)


def _from_columns(pa: Any, columns: Mapping[str, Any], known: "pa.Schema | None") -> Any:
    wanted = _fields_of(pa, list(columns), known)
    return _made(pa.table, dict(columns), schema=wanted)


def _fields_of(pa: Any, names: Sequence[str], known: "pa.Schema | None") -> Any:
    """The known types of these columns; None when there is one that is not known."""
    if known is None or not set(names) <= set(known.names):
        return None
    return pa.schema([known.field(name) for name in names])


def _cast(table: "pa.Table", types: "Mapping[str, pa.DataType]") -> "pa.Table":
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if column.type != types[name]:
            table = table.set_column(place, name, _made(column.cast, types[name], what=name))
    return table


def _can_cast(pa: Any, kind: "pa.DataType") -> bool:
    """Whether Arrow can cast the type: not list views and run-end encoded values."""
    types = pa.types
    if types.is_list_view(kind) or types.is_large_list_view(kind) or types.is_run_end_encoded(kind):
        return False
    inner = range(kind.num_fields) if types.is_nested(kind) else ()
    return all(_can_cast(pa, kind.field(i).type) for i in inner)


def _made(make: Any, *arguments: Any, what: str = "", **options: Any) -> Any:
    """Convert values with Arrow; its errors are about the data."""
    pa = load("pyarrow", "reading and writing rows")
    try:
        return make(*arguments, **options)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"{what and f'column {what!r} of '}the data does not fit: {error}",
            detail="correct it, or say schema={'column': type}",
        ) from error


def _stream(schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> Iterator[bytes]:
    """An Arrow IPC stream, piece by piece."""
    pa = load("pyarrow", "reading and writing rows")
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield _take(sink)
    # The end of the stream, and the schema if there are no rows.
    yield _take(sink)


def _take(sink: io.BytesIO) -> bytes:
    content = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return content
