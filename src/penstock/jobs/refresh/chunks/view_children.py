"""What a chunker made of source rows, as the view has it, for rows that only inherit others."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.jobs.kept.rows import Known
from penstock.jobs.refresh.chunks.children import find_children
from penstock.jobs.refresh.inputs import take
from penstock.lance.diff.row_sets import RowSet
from penstock.lance.read.scans import quote_parts

if TYPE_CHECKING:
    from lance import LanceDataset


class ViewChildren:
    """The children of some source rows, as the function would make them."""

    def __init__(self, view: "LanceDataset", sources: RowSet, kinds: "pa.Schema") -> None:
        self._view, self._sources, self._kinds = view, sources, kinds

    def __len__(self) -> int:
        return len(self._sources)

    def find(self, keys: Any, columns: "Sequence[pa.Array]", wanted: Any) -> list[Known]:
        """Those of the rows that are wanted which are known."""
        rows = np.flatnonzero(wanted & self._sources.contains(keys))
        if not len(rows):
            return []
        rows = rows[np.argsort(keys[rows], kind="stable")]
        children = find_children(self._view, keys[rows])
        (field,) = self._kinds
        struct = field.type.value_type
        names = [quote_parts((each.name,)) for each in struct]
        items = [pa.array([], each.type) for each in struct]
        if len(children.row_ids):
            read = take(self._view, children.row_ids, names)
            items = [each.cast(kind.type) for each, kind in zip(read, struct, strict=True)]
        made = pa.StructArray.from_arrays(items, fields=list(struct))
        starts = np.searchsorted(children.sources, keys[rows])
        offsets = pa.array([*starts, len(children.sources)], pa.int32())
        values = pa.ListArray.from_arrays(offsets, made, type=field.type)
        batch = pa.record_batch([values], schema=self._kinds)
        return [Known(rows, batch, np.zeros(len(rows), bool))]
