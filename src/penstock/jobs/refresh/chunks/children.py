"""The rows of a view that were made of a source's rows, found by those. All of it blocks."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import is_among
from penstock.lance.errors import translated
from penstock.lance.read.scans import ADDRESS, OFFSET_BITS
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.diff.masks import Mask
    from penstock.lance.diff.row_sets import Ids

SCAN_ROWS = 262_144
# Lance takes a list of so many ids in a filter quickly.
MAX_LISTED = 1000


class Children(NamedTuple):
    """Rows of a view: whose they are, which of those, their ids, and their places."""

    sources: "Ids"
    numbers: "Ids"
    row_ids: "Ids"
    fragments: "Ids"
    offsets: "Ids"

    def take(self, which: "Mask | Ids") -> "Children":
        return Children(*(each[which] for each in self))


def find_children(view: "LanceDataset", sources: "Ids | None" = None) -> Children:
    """The rows that were made of these source rows, or all; by source row, in order."""
    empty = np.empty(0, np.int64)
    parts: list[tuple[Any, ...]] = [(empty,) * 5]
    where = None
    if sources is not None:
        if not len(sources):
            return Children(*parts[0])
        sources = np.unique(sources)
        if len(sources) <= MAX_LISTED:
            where = f"`{SOURCE_ROW_ID}` IN ({', '.join(map(str, sources.tolist()))})"
    with translated():
        scanner = view.scanner(
            columns=[SOURCE_ROW_ID, CHILD_INDEX],
            filter=where,
            with_row_id=True,
            with_row_address=True,
            batch_size=SCAN_ROWS,
        )
        for batch in scanner.to_batches():
            addresses = np.asarray(batch.column(ADDRESS))
            part: tuple[Any, ...] = (
                as_ids(batch.column(SOURCE_ROW_ID)),
                as_ids(batch.column(CHILD_INDEX)),
                as_ids(batch.column("_rowid")),
                (addresses >> np.uint64(32)).astype(np.int64),
                (addresses & np.uint64(OFFSET_BITS)).astype(np.int64),
            )
            if sources is not None and where is None:
                mine = is_among(part[0], sources)
                part = tuple(each[mine] for each in part)
            parts.append(part)
    found = Children(*(np.concatenate(each) for each in zip(*parts, strict=True)))
    return found.take(np.lexsort((found.numbers, found.sources)))
