"""Lance tables for Spark SQL: one version, and only the columns and rows that matter.

What is below `read_kernel` runs in Python workers, which need penstock installed.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import Struct, json

from penstock.jobs.engine.needed_rows import ROW_ID
from penstock.jobs.spark.tasks import Engine, Kernel
from penstock.jobs.spark.types import cast_in, quote, to_spark_schema
from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.read.scans import ADDRESS, quote_parts, scan_expressions
from penstock.lance.session.remote import Location, open_version
from penstock.lance.write.column_files import get_fragment

if TYPE_CHECKING:
    from lance import LanceDataset

# Fewer rows are not worth a task of their own.
MIN_ROWS = 32_768


class FragmentPiece(Struct, frozen=True, array_like=True):
    """Rows of a fragment by offset; None stands for all of them."""

    fragment: int
    range: tuple[int, int] | None = None


class Scan(Struct, frozen=True):
    """A version of a table as Spark reads it."""

    location: Location
    version: int
    # The reader that keeps it open in the workers.
    reader: str
    columns: tuple[str, ...]
    # Base64 of the Arrow schema of these columns.
    schema: str
    tasks: tuple[tuple[FragmentPiece, ...], ...]
    # The name of the column with row ids, if there is one.
    row_id: str | None = None
    # In Lance's SQL: rows that do not match are ignored.
    where: str | None = None


def make_scan(
    dataset: "LanceDataset",
    location: Location,
    paths: Sequence[str],
    reader: str,
    slots: int,
    row_id: str | None = None,
    where: str | None = None,
    most_rows: int | None = None,
) -> Scan:
    """How Spark reads the columns that hold these fields, perhaps only of its first rows."""
    columns = tuple(dict.fromkeys(parse_path(path)[0] for path in paths))
    schema = encode_schema(read_schema(dataset, columns))
    sizes = {fragment.fragment_id: fragment.physical_rows for fragment in dataset.get_fragments()}
    tasks = divide(sizes, slots) if most_rows is None else (take_first(sizes, most_rows),)
    return Scan(location, dataset.version, reader, columns, schema, tasks, row_id, where)


def load(engine: Engine, scan: Scan) -> Any:
    """The table as a frame."""
    return load_with(engine, scan, read_kernel(scan), len(scan.tasks))


def load_with(engine: Engine, scan: Scan, kernel: Kernel, count: int) -> Any:
    """A frame like the table, whose rows a kernel reads by the numbers of its tasks."""
    return engine.spark.range(0, count, 1, count).mapInArrow(kernel, spark_schema(scan))


def load_empty(engine: Engine, schema: "pa.Schema") -> Any:
    """A frame with these columns and no rows, for a query that is only analyzed."""
    columns = to_spark_schema(schema) or f"{ADDRESS} bigint"
    return engine.spark.range(0).mapInArrow(_pass_on, columns)


def _pass_on(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    return batches


def spark_schema(scan: Scan) -> str:
    """The frame's columns as Spark DDL."""
    parts = [to_spark_schema(decode_schema(scan.schema))] if scan.columns else []
    if scan.row_id is not None:
        parts.append(f"{quote(scan.row_id)} bigint")
    # Spark has no tables without columns.
    return ", ".join(parts) or f"{ADDRESS} bigint"


def read_schema(dataset: "LanceDataset", columns: Sequence[str]) -> "pa.Schema":
    """The columns as a scan gives them: blobs as bytes."""
    if not columns:
        return pa.schema([])
    scanner = dataset.scanner(columns=list(columns), blob_handling="all_binary", limit=0)
    return pa.schema([scanner.projected_schema.field(name) for name in columns])


def divide(sizes: "dict[int, int]", slots: int) -> tuple[tuple[FragmentPiece, ...], ...]:
    """Tasks with about the same number of rows, given the rows of each fragment."""
    total = sum(sizes.values())
    count = max(1, min(slots, -(-total // MIN_ROWS)))
    tasks: list[list[FragmentPiece]] = [[] for _ in range(count)]
    done = 0
    for id, rows in sizes.items():
        first = 0
        while first < rows:
            number = done * count // total
            # Up to where the next task begins.
            last = min(rows, first + -(-(number + 1) * total // count) - done)
            is_whole = last - first == rows
            tasks[number].append(FragmentPiece(id, None if is_whole else (first, last)))
            done += last - first
            first = last
    return tuple(map(tuple, tasks))


def take_first(sizes: "dict[int, int]", most_rows: int) -> tuple[FragmentPiece, ...]:
    """The first rows of a table, given the rows of each fragment."""
    taken, left = list[FragmentPiece](), most_rows
    for id, rows in sizes.items():
        if left > 0:
            taken.append(FragmentPiece(id, None if rows <= left else (0, left)))
            left -= rows
    return tuple(taken)


def read_kernel(scan: Scan) -> Kernel:
    """A kernel that gives Spark the rows of a scan."""
    return partial(_read, json.encode(scan))


def _read(encoded: bytes, numbers: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    scan = json.decode(encoded, type=Scan)
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            for piece in scan.tasks[number]:
                yield from read_piece(scan, piece)


def read_piece(scan: Scan, piece: FragmentPiece) -> "Iterator[pa.RecordBatch]":
    """Rows of a fragment, in Spark's form."""
    dataset = open_version(scan.location, scan.version, scan.reader)
    fragment = get_fragment(dataset, piece.fragment)
    columns = {name: quote_parts((name,)) for name in scan.columns}
    where = show_conditions(piece, scan.where)
    with_row_id = scan.row_id is not None
    for batch in scan_expressions(dataset, fragment, columns, where, with_row_id=with_row_id):
        yield to_spark(scan, batch)


def show_conditions(piece: FragmentPiece, *where: str | None) -> str | None:
    """In Lance's SQL: the conditions for a fragment's rows to be in a piece, and to matter."""
    conditions = [f"({each})" for each in where if each is not None]
    if piece.range is not None:
        # Ranges of a scan only count the rows that match, so a filter would shift them.
        first, last = ((piece.fragment << 32) + offset for offset in piece.range)
        conditions += [f"{ADDRESS} >= {first}", f"{ADDRESS} < {last}"]
    return " AND ".join(conditions) or None


def to_spark(scan: Scan, batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """A batch with the columns of a scan, in Spark's form."""
    made = dict(zip(scan.columns, cast_in(batch.select(list(scan.columns))).columns, strict=True))
    if scan.row_id is not None:
        made[scan.row_id] = batch.column(ROW_ID).cast(pa.int64())
    return pa.record_batch(made or {ADDRESS: batch.column(ADDRESS).cast(pa.int64())})
