"""Expressions over some rows of a fragment, with their ids and addresses. All of it blocks."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset, LanceFragment

from penstock.jobs.engine.row_ranges import NeededRows
from penstock.lance.errors import translated
from penstock.lance.read.scans import (
    ADDRESS,
    BATCH_ROWS,
    offsets_of,
    read_row_ids,
    scan_expressions,
)

ROW_ID = "_rowid"
# The column that marks, in a take, which rows match the filter.
TAKEN = "__taken"
# Rows are taken by id, which costs more for each, only if fewer than one in so many is needed.
SPARSE = 50


def scan_needed(
    dataset: LanceDataset,
    fragment: LanceFragment,
    needed: NeededRows,
    columns: Mapping[str, str],
    where: str | None,
) -> Iterator[pa.RecordBatch]:
    """The expressions, `_rowid` and `_rowaddr` of the needed rows that match `where`."""
    need = needed.mask(needed.need)
    if need is not None and needed.rows * SPARSE < needed.end - needed.start:
        yield from _take(dataset, fragment, needed, columns, where)
        return
    filters = [] if where is None else [f"({where})"]
    if needed.end - needed.start < needed.physical_rows:
        base = needed.fragment << 32
        filters += [f"{ADDRESS} >= {base + needed.start}", f"{ADDRESS} < {base + needed.end}"]
    condition = " AND ".join(filters) or None
    for batch in scan_expressions(dataset, fragment, columns, condition, with_row_id=True):
        taken = batch if need is None else batch.filter(pa.array(need[offsets_of(batch)]))
        if taken.num_rows:
            yield taken


def _take(
    dataset: LanceDataset,
    fragment: LanceFragment,
    needed: NeededRows,
    columns: Mapping[str, str],
    where: str | None,
) -> Iterator[pa.RecordBatch]:
    offsets = np.flatnonzero(needed.mask(needed.need))
    offsets = offsets[(offsets >= needed.start) & (offsets < needed.end)]
    ids = read_row_ids(dataset, fragment)
    asked = {**columns, ROW_ID: ROW_ID, ADDRESS: ADDRESS}
    if where is not None:
        asked[TAKEN] = f"({where})"
    for start in range(0, len(offsets), BATCH_ROWS):
        part = offsets[start : start + BATCH_ROWS]
        with translated():
            found = dataset._take_rows(pa.array(ids[part], pa.uint64()), columns=asked)
        if where is not None:
            found = pc.filter(found, found[TAKEN]).drop_columns([TAKEN])
        yield from found.combine_chunks().to_batches()
