"""Blobs of single rows: whole ones as a table of rows, large ones in ranges. Everything blocks."""

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.errors import InvalidRequest, InvalidTableState
from penstock.lance.columns.fields import get_field, parse_path
from penstock.lance.doors import lance, outside_blobs, pa

# Values that are read and sent together take about so many bytes.
BATCH_BYTES = 4 * 1024 * 1024
# The largest value that is read whole; a larger one is read in ranges.
MAX_WHOLE_BYTES = 32 * 1024 * 1024
BATCH_ROWS = 1024


def read_blobs(
    dataset: "lance.LanceDataset", column: str, ids: Sequence[int]
) -> "pa.RecordBatchReader":
    """The bytes of a blob column for these rows, in their order, a few megabytes at a time."""
    schema = pa.schema([pa.field(column, pa.large_binary())])
    sizes = _measure(dataset, column, ids)
    for id, size in zip(ids, sizes, strict=True):
        if size > MAX_WHOLE_BYTES:
            # By these words lancedb's client knows to read it in ranges.
            raise InvalidRequest(
                f"fetch_blobs accepts at most {MAX_WHOLE_BYTES} total blob bytes in a row; "
                f"that of row {id} in column {column} has {size}",
                detail="read it in ranges: fetch_blob_files",
            )

    def read() -> "Iterator[pa.RecordBatch]":
        for part in _split(ids, sizes):
            found = dataset.read_blobs(column, ids=list(part), preserve_order=True)
            values = pa.array([value for _, value in found], pa.large_binary())
            yield pa.record_batch([values], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, read())


def open_blob(
    dataset: "lance.LanceDataset", column: str, id: int
) -> "tuple[int, lance.BlobFile | None]":
    """The version, and in it one row's blob as a file that reads ranges; None for a null."""
    _measure(dataset, column, [id])
    (found,) = dataset.take_blobs(column, ids=[id], buffer_size=0)
    return dataset.version, found


def _measure(dataset: "lance.LanceDataset", column: str, ids: Sequence[int]) -> list[int]:
    """The size of each row's blob; refuses rows that don't exist and blobs outside the table."""
    get_field(dataset, column)
    path = "`" + "`.`".join(part.replace("`", "``") for part in parse_path(column)) + "`"
    sizes: list[int] = []
    for start in range(0, len(ids), BATCH_ROWS):
        part = list(ids[start : start + BATCH_ROWS])
        columns = {"blob": path, "_rowid": "_rowid"}
        found = dataset._take_rows(pa.array(part, pa.uint64()), columns=columns)
        known: list[int] = found["_rowid"].to_pylist()
        if known != part:
            lost = next((id for id in part if id not in set(known)), part[0])
            raise InvalidRequest(
                f"version {dataset.version} has no row with the id {lost}",
                detail="take row ids from a query with_row_id of the same version",
            )
        described: Any = found["blob"].combine_chunks()
        if not pa.types.is_struct(described.type) or "blob_uri" not in described.type.names:
            raise InvalidRequest(
                f"column {column} holds no blobs", detail="select it in a query instead"
            )
        if outside_blobs.has_outside(described):
            raise InvalidTableState(
                f"column {column} has blobs outside the table's own files",
                detail="write them with external_blob_mode='ingest', so that it has them",
            )
        sizes += [0 if each is None else each["size"] for each in described.to_pylist()]
    return sizes


def _split(ids: Sequence[int], sizes: Sequence[int]) -> Iterator[Sequence[int]]:
    """Runs of rows whose blobs are few enough to be read together."""
    start = held = 0
    for at, size in enumerate(sizes):
        if at > start and (held + size > BATCH_BYTES or at - start == BATCH_ROWS):
            yield ids[start:at]
            start, held = at, 0
        held += size
    if start < len(ids):
        yield ids[start:]
