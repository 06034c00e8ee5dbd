"""Find the rows of a view by the source rows that they come from. All of it blocks."""

from typing import NamedTuple

import numpy as np
from lance import LanceDataset

from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import Ids, is_among
from penstock.lance.errors import translated
from penstock.model.views import SOURCE_ROW_ID

SCAN_ROWS = 262_144


class ViewRows(NamedTuple):
    """Ids of source rows, in order, and of the view rows that come from them."""

    sources: Ids
    ids: Ids


def find_view_rows(view: LanceDataset, sources: Ids | None) -> ViewRows:
    """The rows that come from these source rows, which are sorted; None stands for all."""
    found: list[tuple[Ids, Ids]] = [(np.empty(0, np.int64),) * 2]
    if sources is None or len(sources):
        with translated():
            scanner = view.scanner(columns=[SOURCE_ROW_ID], with_row_id=True, batch_size=SCAN_ROWS)
            for batch in scanner.to_batches():
                of, ids = as_ids(batch.column(SOURCE_ROW_ID)), as_ids(batch.column("_rowid"))
                if sources is not None:
                    taken = is_among(of, sources)
                    of, ids = of[taken], ids[taken]
                found.append((of, ids))
    both = [np.concatenate(each) for each in zip(*found, strict=True)]
    order = np.argsort(both[0], kind="stable")
    return ViewRows(both[0][order], both[1][order])
