"""Finished files of whole fragments, whose values follow rows into other fragments. It blocks.

They have no digests, which would cost more than fast functions do: whether a value still holds is
found out by comparing the inputs with those of the version that it was computed from.
"""

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileReader

from penstock.errors import DamagedFile, InvalidRequest, InvalidTableState, NotFound
from penstock.jobs.engine.checkpoints import Checkpoint, ValueOrigin, has_file
from penstock.jobs.engine.fragment_work import PARTIAL_PREFIX, UNFILLED_KEY
from penstock.jobs.kept.parts import STEP_ROWS, to_batch
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.masks import unpack
from penstock.lance.diff.row_diff import find_changed, scan_all
from penstock.lance.diff.row_sets import RowPlaces, is_among
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location, open_version

# What shows that a version, or a file of it, is gone.
GONE = (DamagedFile, NotFound, InvalidRequest, InvalidTableState)


@dataclass(frozen=True, slots=True, eq=False)
class KeptFile:
    """A file that was made for a whole fragment, and the rows that have a value in it."""

    path: str
    options: dict[str, str]
    kinds: pa.Schema
    # The version that it was computed from, with the rows as they were there.
    then: LanceDataset
    # What the inputs were called then.
    inputs: tuple[str, ...]
    rows: RowPlaces
    # By offset.
    failed: Any

    @staticmethod
    def load(
        location: Location,
        note: Checkpoint,
        kinds: pa.Schema,
        declared: tuple[str, ...],
        reader: str,
    ) -> "KeptFile | None":
        """None when it is gone, or the version that it was computed from is.

        `declared` are the inputs' names in a note that does not tell them.
        """
        work = note.work
        if note.origin is None:
            return None
        then = _open_origin(location, note.origin, reader)
        if then is None or not then.has_stable_row_ids:
            return None
        inputs = note.origin.inputs or declared
        if not has_file(location.place(), location, note):
            return None
        path = f"{location.uri}/{location.data_folder}/{note.file.path}"
        options = dict(location.options)
        failed = np.zeros(work.physical_rows, bool)
        if note.file.path.startswith(f"{PARTIAL_PREFIX}-"):
            failed = _read_unfilled(path, options, work.physical_rows)
        rows = scan_all(then, [work.id])
        if work.need is not None:
            rows = rows.take(unpack(work.need, work.physical_rows)[rows.offsets])
        return KeptFile(path, options, kinds, then, inputs, rows, failed)

    def without_failed(self) -> "KeptFile":
        return replace(self, rows=self.rows.take(~self.failed[self.rows.offsets]))

    def find(self, now: LanceDataset, inputs: Sequence[str], rows: RowPlaces) -> tuple[Any, Any]:
        """Those of a version's rows that have a value here which holds, and where.

        Rows that only a compaction moved are not read.
        """
        mine = np.flatnonzero(is_among(rows.ids, self.rows.ids))
        old = self.rows.take(np.searchsorted(self.rows.ids, rows.ids[mine]))
        try:
            same = ~find_changed(now, self.then, inputs, rows.take(mine), old, self.inputs)
        except GONE:
            # An input was not there yet, or a file of then is gone: nothing is known.
            same = np.zeros(len(mine), bool)
        return mine[same], old.offsets[same]

    def stream(self, places: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """The values at some offsets, in this order, and which of the rows failed."""
        with translated():
            reader = LanceFileReader(self.path, storage_options=self.options or None)
        for at in range(0, len(places), STEP_ROWS):
            step = places[at : at + STEP_ROWS]
            # The file is read in its own order.
            order = np.argsort(step, kind="stable")
            back = np.empty(len(step), np.int64)
            back[order] = np.arange(len(step))
            with translated():
                table = reader.take_rows(step[order].tolist()).to_table()
            yield to_batch(table.take(pa.array(back)), self.kinds), self.failed[step]


def _open_origin(location: Location, origin: ValueOrigin, reader: str) -> LanceDataset | None:
    """The version that a file was computed from; None when it is gone."""
    try:
        found = open_version(location, origin.version, reader)
        if origin.transaction in ("", transaction_of(found)):
            return found
    except GONE:
        pass
    return None


def _read_unfilled(path: str, options: dict[str, str], count: int) -> Any:
    with translated():
        reader = LanceFileReader(path, storage_options=options or None)
        stored = (reader.metadata().schema.metadata or {}).get(UNFILLED_KEY, b"")
    return unpack(base64.b64decode(stored), count)
