"""Batches of one file, whatever its format: what all formats share, and Parquet and Arrow files.

A file is read twice: its beginning tells its columns, then its rows are read with the types that
were chosen for all files.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaMismatch
from penstock.sdk.rows import csv_files, json_files
from penstock.sdk.rows.doors import pa, pq
from penstock.sdk.rows.files import RowFile, reading
from penstock.sdk.rows.types import Place, conform

if TYPE_CHECKING:
    import pyarrow

STEP_ROWS = 16_384

Tell = Callable[[int], None]


def find_schema(file: RowFile, known: "pyarrow.Schema | None") -> "pyarrow.Schema":
    """The columns of a file and of its folders' names; of those that are known, the types too."""
    with reading(file.name):
        match file.format:
            case "csv":
                found = csv_files.find_schema(file, known)
            case "json":
                found = json_files.find_schema(file, known)
            case "parquet":
                with _open_parquet(file) as opened:
                    found = opened.schema_arrow.remove_metadata()
            case "arrow":
                with _open_arrow(file) as reader:
                    found = reader.schema
    for name, kind, _ in file.keys:
        if name not in found.names:
            found = found.append(pa.field(name, pa.type_for_alias(kind)))
    return found


def read_batches(
    file: RowFile, schema: "pyarrow.Schema", tell: Tell
) -> "Iterator[pyarrow.RecordBatch]":
    """The rows of a file with these columns; `tell` hears how many of its bytes were read."""
    place = Place(file.name, *(("line", 2) if file.format == "csv" else ("row", 1)))
    with reading(file.name):
        for batch in _read(file, schema, tell):
            for name, kind, value in file.keys:
                if name not in batch.schema.names:
                    scalar = pa.scalar(value, pa.type_for_alias(kind))
                    batch = batch.append_column(name, pa.repeat(scalar, batch.num_rows))
            yield conform(batch, schema, place)
            place = place.after(batch.num_rows)


def _read(file: RowFile, schema: "pyarrow.Schema", tell: Tell) -> "Iterator[pyarrow.RecordBatch]":
    match file.format:
        case "csv":
            yield from csv_files.read_batches(file, schema, tell)
        case "json":
            yield from json_files.read_batches(file, schema, tell)
        case "parquet":
            yield from _read_parquet(file, tell)
        case "arrow":
            with _open_arrow(file) as reader:
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)
                    tell(file.size * (number + 1) // reader.num_record_batches)


def _read_parquet(file: RowFile, tell: Tell) -> "Iterator[pyarrow.RecordBatch]":
    with _open_parquet(file) as opened:
        count, done = opened.metadata.num_rows, 0
        for batch in opened.iter_batches(STEP_ROWS, use_threads=False):
            yield batch
            done += batch.num_rows
            tell(file.size * done // count)


def _open_parquet(file: RowFile) -> "pq.ParquetFile":
    try:
        # Read column by column as it is needed, and not ahead: row groups may be large.
        return pq.ParquetFile(file.open(), buffer_size=2**20, pre_buffer=False)
    except pa.ArrowInvalid as error:
        raise _broken(file, "Parquet", error) from error


def _open_arrow(file: RowFile) -> Any:
    try:
        return pa.ipc.open_file(file.open())
    except pa.ArrowInvalid as error:
        raise _broken(file, "Arrow", error) from error


def _broken(file: RowFile, format: str, error: Exception) -> SchemaMismatch:
    return SchemaMismatch(
        f"{file.name} is no sound {format} file: {str(error).partition(chr(10))[0]}",
        detail="make it anew, or leave it out",
    )
