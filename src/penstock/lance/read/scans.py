"""Read the rows of one fragment, in order and in bounded memory. Everything here blocks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceFragment

from penstock.lance.columns.fields import Path, get_field, parse_path
from penstock.lance.diff.fragments import all_ids, has_blobs
from penstock.lance.errors import translated
from penstock.lance.read.outside_blobs import check_blobs

ADDRESS = "_rowaddr"
OFFSET_BITS = 0xFFFF_FFFF
BATCH_ROWS = 65_536
BATCH_BYTES = 32 * 2**20
# What Lance reads ahead is in memory as well.
READ_AHEAD = 2
BUFFER_BYTES = 128 * 2**20
# Lance learns the size of rows from its first batch, so that one must not be too large. If the
# files say that it can't be, nothing is read to find out.
SAFE_BYTES = 8 * 2**20
SAMPLE_ROWS = 8
# Rows so large that only few fit into a batch are read range by range, without reading ahead.
FEW_ROWS = 4096
# Rows closer together than this are read at once.
NEAR_ROWS = 4096
MAX_RANGES = 64
# Once the parts are so much of a fragment, a full scan is faster.
MOST_OF_IT = 0.5
_TAKEN = "__taken"


def quote_path(path: str) -> str:
    """A field path as SQL reads it, whatever the names are."""
    return quote_parts(parse_path(path))


def quote_parts(parts: Path) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parts)


def scan_rows(
    dataset: LanceDataset,
    fragment: LanceFragment,
    paths: Sequence[str],
    wanted: Any = None,
    *,
    with_row_id: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Fields and addresses of the live rows, or of those in `wanted` (booleans by offset).

    Columns are named by number, so that a path may be given twice.
    """
    columns = {str(number): quote_path(path) for number, path in enumerate(paths)}
    return scan_columns(
        dataset, fragment, columns, wanted=wanted, paths=paths, with_row_id=with_row_id
    )


def scan_columns(
    dataset: LanceDataset,
    fragment: LanceFragment,
    columns: Mapping[str, str],
    *,
    where: str | None = None,
    wanted: Any = None,
    paths: Sequence[str] | None = None,
    with_row_id: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Expressions over the live rows that match `where`, or over those of them in `wanted`.

    `paths` are the fields that they are, if they are plain fields.
    """
    size = _batch_rows(dataset, fragment, columns, paths)
    ranges = _ranges(dataset, fragment, wanted)
    if size < FEW_ROWS:
        ranges = _steps(ranges, fragment.physical_rows - fragment.num_deletions, size)
    # A range counts the rows that match a filter, so the filter is applied afterwards.
    is_whole = ranges == [(None, None)]
    if where is not None and not is_whole:
        columns = {**columns, _TAKEN: f"({where})"}
    for start, count in ranges:
        for batch in scan_expressions(
            dataset,
            fragment,
            columns,
            where if is_whole else None,
            start=start,
            count=count,
            batch_rows=size,
            with_row_id=with_row_id,
        ):
            found = batch if wanted is None else _pick(batch, wanted)
            if _TAKEN in columns:
                found = found.filter(found.column(_TAKEN)).drop_columns([_TAKEN])
            if found.num_rows:
                yield found


def scan_expressions(
    dataset: LanceDataset,
    fragment: LanceFragment,
    columns: Mapping[str, str],
    where: str | None = None,
    *,
    start: int | None = None,
    count: int | None = None,
    batch_rows: int = BATCH_ROWS,
    with_row_id: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Expressions over the live rows, or a range of them, that match `where`; with addresses."""
    with translated():
        rows: dict[str, Any] = {"filter": where, "offset": start, "limit": count}
        check_blobs(dataset, columns.values(), fragments=[fragment], scan_in_order=True, **rows)
        scanner = dataset.scanner(
            columns=dict(columns),
            fragments=[fragment],
            # Lance does not scan for constants alone.
            with_row_address=True,
            with_row_id=with_row_id,
            batch_size=batch_rows,
            batch_size_bytes=BATCH_BYTES,
            batch_readahead=READ_AHEAD,
            io_buffer_size=BUFFER_BYTES,
            scan_in_order=True,
            blob_handling="all_binary",
            **rows,
        )
        yield from scanner.to_batches()


def offsets_of(batch: pa.RecordBatch) -> Any:
    """The offset of each row within its fragment."""
    addresses = np.asarray(batch.column(ADDRESS))
    return (addresses & np.uint64(OFFSET_BITS)).astype(np.int64)


def live_rows(dataset: LanceDataset, fragment: LanceFragment) -> Any:
    """Booleans by offset: the rows that are not deleted."""
    if not fragment.num_deletions:
        return np.ones(fragment.physical_rows, bool)
    live = np.zeros(fragment.physical_rows, bool)
    for batch in scan_expressions(dataset, fragment, {}):
        live[offsets_of(batch)] = True
    return live


def read_row_ids(dataset: LanceDataset, fragment: LanceFragment) -> Any:
    """The row ids by offset; 0 for deleted rows."""
    ids = np.zeros(fragment.physical_rows, np.uint64)
    with translated():
        scanner = dataset.scanner(
            columns=[], fragments=[fragment], with_row_address=True, with_row_id=True
        )
        for batch in scanner.to_batches():
            ids[offsets_of(batch)] = np.asarray(batch.column("_rowid"))
    return ids


def _batch_rows(
    dataset: LanceDataset,
    fragment: LanceFragment,
    columns: Mapping[str, str],
    paths: Sequence[str] | None,
) -> int:
    """How many rows a batch may have, so that it is not too large in bytes."""
    rows = max(1, fragment.physical_rows)
    total = None if paths is None else _stored_bytes(dataset, fragment, paths)
    if total is not None and total / rows * BATCH_ROWS <= SAFE_BYTES:
        return BATCH_ROWS
    live = rows - fragment.num_deletions
    found = read = 0
    for start in {0, live // 2, max(0, live - SAMPLE_ROWS)}:
        sample = scan_expressions(
            dataset, fragment, columns, start=start, count=SAMPLE_ROWS, batch_rows=SAMPLE_ROWS
        )
        for batch in sample:
            found, read = found + batch.nbytes, read + batch.num_rows
    return min(BATCH_ROWS, max(1, BATCH_BYTES * read // max(1, found))) if read else BATCH_ROWS


def _stored_bytes(
    dataset: LanceDataset, fragment: LanceFragment, paths: Sequence[str]
) -> int | None:
    """The maximum size of some fields' files; None when unknown."""
    fields = [get_field(dataset, path).lance for path in paths]
    # Blobs may be in files that are not named here.
    if any(map(has_blobs, fields)):
        return None
    ids = {id for field in fields for id in all_ids(field)}
    sizes = [file.file_size_bytes for file in fragment.data_files() if ids & set(file.fields)]
    return sum(size or 0 for size in sizes) if all(sizes) else None


def _pick(batch: pa.RecordBatch, wanted: Any) -> pa.RecordBatch:
    taken = wanted[offsets_of(batch)]
    return batch if taken.all() else batch.filter(pa.array(taken))


def _steps(
    ranges: Sequence[tuple[int | None, int | None]], live: int, size: int
) -> list[tuple[int | None, int | None]]:
    """Split ranges into steps of so many rows."""
    found: list[tuple[int | None, int | None]] = []
    for start, count in ranges:
        first = start or 0
        end = live if count is None else first + count
        found += [(at, min(size, end - at)) for at in range(first, end, size)]
    return found


def _ranges(
    dataset: LanceDataset, fragment: LanceFragment, wanted: Any
) -> list[tuple[int | None, int | None]]:
    """The ranges of live rows to read: a few short ones, or all."""
    if wanted is None:
        return [(None, None)]
    live = live_rows(dataset, fragment)
    # Lance counts only rows that are not deleted.
    places = (np.cumsum(live) - 1)[np.flatnonzero(live & wanted)]
    if not len(places):
        return []
    cuts = np.flatnonzero(np.diff(places) > NEAR_ROWS)
    starts = places[np.concatenate(([0], cuts + 1))]
    ends = places[np.concatenate((cuts, [len(places) - 1]))] + 1
    if len(starts) > MAX_RANGES or (ends - starts).sum() > MOST_OF_IT * live.sum():
        return [(None, None)]
    return [(int(start), int(end - start)) for start, end in zip(starts, ends, strict=True)]
