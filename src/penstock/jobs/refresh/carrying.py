"""Carry what users added to rows of a view that move into new fragments. All of it blocks.

Such a fragment names its rows by the ids that they had, so indexes and the states of computed
columns know them. Its file of added columns is written right before the commit, from the version
that the commit is made for: what others put into these columns meanwhile is carried, too.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata, RowIdSequence

from penstock.crash import crash_point
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.refresh.context import ViewChange
from penstock.jobs.refresh.row_files import RowFiles
from penstock.lance.columns.computed import list_computed
from penstock.lance.columns.fields import show_path
from penstock.lance.diff.compare import step_rows
from penstock.lance.diff.fragments import has_blobs
from penstock.lance.diff.row_sets import Ids
from penstock.lance.read.by_id import RowReader
from penstock.lance.session.remote import Location


def carry_columns(
    view: LanceDataset,
    location: Location,
    attempt: Attempt,
    own: Collection[str],
    change: ViewChange,
) -> tuple[str, ...]:
    """The fragments of a change, those of moved rows with all columns that are not the view's own.

    The version is the one that the change will be committed to. Blobs are left behind.
    """
    fields = [each for each in view.lance_schema.fields() if each.name() not in own]
    names = [each.name() for each in fields if not has_blobs(each)]
    moved = {text: ids for text in change.fragments if (ids := _read_ids(text)) is not None}
    if not names or not moved:
        return change.fragments
    carrier = _Carrier(view, location, attempt, names, change)
    carried = tuple(
        carrier.carry(text, moved[text]) if text in moved else text for text in change.fragments
    )
    crash_point("columns carried")
    return carried


def forget_ids(fragments: Sequence[str]) -> tuple[str, ...]:
    """The same fragments for a commit in which every added row is a new one."""
    return tuple(json.dumps({**json.loads(each), "row_id_meta": None}) for each in fragments)


def _read_ids(fragment: str) -> Ids | None:
    """The ids of a fragment's rows, if they move."""
    meta = FragmentMetadata.from_json(fragment).row_id_meta
    if meta is None:
        return None
    found: Any = RowIdSequence.from_inline_metadata(meta).to_pyarrow()
    return np.asarray(found).astype(np.int64)


class _Carrier:
    """Reads rows of one version, and writes them for other fragments."""

    def __init__(
        self,
        view: LanceDataset,
        location: Location,
        attempt: Attempt,
        names: Sequence[str],
        change: ViewChange,
    ) -> None:
        self._view, self._location, self._attempt = view, location, attempt
        self._names, self._alike = names, change.alike
        # Others only fit a row that is the same in all that a function made.
        self._computed = {each.name for each in list_computed(view.schema)}
        holding = {each.fragment_id for each in view.get_fragments()}
        self._reader = RowReader(view, holding)
        self._step = step_rows(view, holding)

    def carry(self, fragment: str, ids: Ids) -> str:
        """The fragment with one more file."""
        job, number = self._attempt.job, self._attempt.number
        files = RowFiles(self._view, self._location, self._names, job, number, len(ids))
        for start in range(0, len(ids), self._step):
            self._attempt.check()
            files.write(self._read(ids[start : start + self._step], files.schema))
        (made,) = files.close()
        told = json.loads(fragment)
        return json.dumps({**told, "files": [*told["files"], *json.loads(made)["files"]]})

    def _read(self, ids: Ids, schema: pa.Schema) -> pa.RecordBatch:
        found = self._reader.read(ids, [show_path((name,)) for name in self._names])
        if self._alike is not None and (is_alike := self._alike.contains(ids)).any():
            rows = pa.array(np.arange(len(ids)), mask=is_alike)
            found = [
                each if name in self._computed else each.take(rows)
                for name, each in zip(self._names, found, strict=True)
            ]
        return pa.record_batch(found, schema=schema)
