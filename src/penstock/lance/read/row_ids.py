"""Row ids of fragments, with the place of each. Everything here blocks."""

from collections.abc import Collection, Iterator

import numpy as np
from lance import LanceDataset

from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.read.scans import offsets_of

SCAN_ROWS = 65_536


def scan_rows(
    dataset: LanceDataset,
    fragments: Collection[int],
    where: str | None = None,
    batch_rows: int = SCAN_ROWS,
) -> Iterator[tuple[Ids, Ids, Ids]]:
    """Yield the row ids of fragments in parts, with the fragment and offset of each."""
    if not fragments:
        return
    chosen = [each for each in dataset.get_fragments() if each.fragment_id in set(fragments)]
    with translated():
        scanner = dataset.scanner(
            columns=[],
            filter=where,
            fragments=chosen,
            with_row_id=True,
            with_row_address=True,
            batch_size=batch_rows,
        )
        for batch in scanner.to_batches():
            addresses = np.asarray(batch.column("_rowaddr"))
            fragment = (addresses >> np.uint64(32)).astype(np.int64)
            yield as_ids(batch.column("_rowid")), fragment, offsets_of(batch)
