"""Compare values of rows in two versions, in steps of bounded memory. Everything here blocks."""

from collections.abc import Collection, Sequence

import numpy as np
from lance import LanceDataset

from penstock.lance.columns.fields import get_field
from penstock.lance.diff.blobs import Side, fields_equal
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.lance.read.by_id import RowReader

# How much of a column is in memory at once, and how many rows at most.
STEP_BYTES, MAX_STEP = 32_000_000, 131_072


def rows_unchanged(
    now: RowReader,
    new: Sequence[str],
    then: RowReader,
    old: Sequence[str],
    ids: Ids,
    step: int,
) -> Mask:
    """Whether the fields of each row, which both versions have, are equal in both."""
    same = np.ones(len(ids), bool)
    if not new:
        return same
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        left, right = now.read(part, new), then.read(part, old)
        for n, path in enumerate(new):
            field = get_field(now.dataset, path).lance
            sides = Side(now, path, left[n]), Side(then, old[n], right[n])
            same[start : start + step] &= fields_equal(*sides, field, part)
    return same


def is_null(reader: RowReader, columns: Sequence[str], ids: Ids, step: int) -> Mask:
    """Whether all columns are null, for each row."""
    found = np.ones(len(ids), bool)
    for start in range(0, len(ids), step):
        for values in reader.read(ids[start : start + step], columns):
            found[start : start + step] &= np.asarray(values.is_null())
    return found


def step_rows(dataset: LanceDataset, fragments: Collection[int]) -> int:
    """How many rows of these fragments to compare at once."""
    widest = 1.0
    for fragment in dataset.get_fragments():
        if fragment.fragment_id in fragments and fragment.physical_rows:
            size = sum(file.file_size_bytes or 0 for file in fragment.data_files())
            widest = max(widest, size / fragment.physical_rows)
    return max(16, min(MAX_STEP, int(STEP_BYTES / widest)))
