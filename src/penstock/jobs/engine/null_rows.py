"""Count the rows that get null without a call, because an input is null; for explanations."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from lance import LanceDataset, LanceFragment

from penstock.lance.columns.fields import get_field
from penstock.lance.diff.fragments import all_ids
from penstock.lance.read.scans import scan_rows

# So much may be read to find out; somebody waits.
MAX_BYTES = 64 * 2**20


def count_null_rows(
    dataset: LanceDataset, parts: Iterable[tuple[int, Any]], paths: Sequence[str]
) -> int | None:
    """How many rows have a null in one of the fields; None where there is too much to read.

    Parts are fragments with the rows that are meant, as booleans by offset; None means all.
    """
    fields = [get_field(dataset, path) for path in paths]
    if not fields:
        return 0
    ids = {id for field in fields for id in all_ids(field.lance)}
    fragments = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    wanted = [(fragments[id], rows) for id, rows in parts]
    if sum(_size(fragment, rows, ids) for fragment, rows in wanted) > MAX_BYTES:
        return None
    found = 0
    for fragment, rows in wanted:
        for batch in scan_rows(dataset, fragment, paths, rows):
            nulls = np.zeros(batch.num_rows, bool)
            for number in range(len(paths)):
                nulls |= np.asarray(batch.column(str(number)).is_null())
            found += int(nulls.sum())
    return found


def _size(fragment: LanceFragment, rows: Any, ids: set[int]) -> float:
    """How many bytes it takes to read these rows, at most."""
    files = [file for file in fragment.data_files() if ids & set(file.fields)]
    size = sum(file.file_size_bytes or 0 for file in files)
    return size if rows is None else size * float(rows.sum()) / max(1, fragment.physical_rows)
