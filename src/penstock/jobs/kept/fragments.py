"""Kept values, found for the rows of a fragment, and put among those that are computed. It blocks.

What finished files have is asked for first, what parts have then: their inputs have to be read.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from lance import LanceDataset, LanceFragment

from penstock.errors import VanishedFile
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.needed_rows import ROW_ID
from penstock.jobs.kept.files import KeptFile
from penstock.jobs.kept.parts import KeptParts
from penstock.jobs.kept.store import Store
from penstock.lance.diff.digests import digest_rows
from penstock.lance.diff.equal import as_ids
from penstock.lance.diff.masks import unpack
from penstock.lance.diff.row_diff import scan_all
from penstock.lance.diff.row_sets import RowPlaces, is_among
from penstock.lance.read.scans import live_rows, offsets_of, scan_rows
from penstock.lance.session.remote import Location
from penstock.lance.write.column_files import Pieces, ValuePiece
from penstock.model.functions import Function

# Has the function compute the rows of a mask.
Compute = Callable[[Any], Iterator[ValuePiece]]
# How it shows that a file of values is not there any more.
GONE = (FileNotFoundError, VanishedFile)


class Source(Protocol):
    """A file with values."""

    def stream(self, places: Any) -> Iterator[tuple[pa.RecordBatch, Any]]:
        """The values at some places, in this order, and which of the rows failed."""


class KeptRows:
    """The rows of a fragment whose values are kept: which source has each, and where."""

    def __init__(self, physical_rows: int) -> None:
        self._sources: list[Source] = []
        # By offset: the number of the source, or -1, and the place in it.
        self._owners = np.full(physical_rows, -1, np.int32)
        self._places = np.full(physical_rows, -1, np.int64)
        # Found out on the way: rows that were taken, and those without a value among them.
        self.rows = 0
        self.failed: list[int] = []

    @property
    def mask(self) -> Any:
        return self._owners >= 0

    def add(self, source: Source, offsets: Any, places: Any) -> None:
        """Say that a source has the values of some rows."""
        if not len(offsets):
            return
        if source not in self._sources:
            self._sources.append(source)
        self._owners[offsets] = self._sources.index(source)
        self._places[offsets] = places

    def merge(
        self, wanted: Any, computed: Iterator[ValuePiece], compute: Compute | None = None
    ) -> Iterator[ValuePiece]:
        """What is kept of the rows that are wanted, and the others as they are computed.

        Rows whose values are gone by the time they are read are computed then.
        """
        streams = {-1: Pieces(computed)}
        rows = np.flatnonzero(wanted)
        runs = np.split(rows, np.flatnonzero(np.diff(self._owners[rows])) + 1)
        for run in runs if len(rows) else ():
            owner = int(self._owners[run[0]])
            if owner not in streams:
                streams[owner] = Pieces(self._take(owner, wanted, compute))
            yield from streams[owner].below(int(run[-1]) + 1)
            if streams[owner].end is None:
                # Its values are not needed in memory any more.
                del streams[owner]

    def _take(self, owner: int, wanted: Any, compute: Compute | None) -> Iterator[ValuePiece]:
        held = wanted & (self._owners == owner)
        offsets = np.flatnonzero(held)
        stream = self._sources[owner].stream(self._places[offsets])
        try:
            first = list(itertools.islice(stream, 1))
        except GONE:
            # Another try of the same work had all of it in a file, and removed it.
            if compute is None:
                raise
            yield from compute(held)
            return
        at = 0
        for values, failed in itertools.chain(first, stream):
            here = offsets[at : at + values.num_rows]
            at += values.num_rows
            self.rows += len(here)
            self.failed += here[failed].tolist()
            yield ValuePiece(here, values)


class FragmentFinder:
    """Finds kept values for the rows of fragments; a task has one."""

    def __init__(
        self,
        store: Store,
        location: Location,
        kinds: pa.Schema,
        function: Function,
        notes: Sequence[Checkpoint] = (),
        *,
        own_only: bool = False,
    ) -> None:
        self._job, self._location, self._kinds = store.job, location, kinds
        self._inputs, self._declared = function.inputs, function.given_as
        self._own_only = own_only
        self._parts = KeptParts(store, kinds, own_only=own_only)
        # The newest first.
        self._notes = list(reversed(notes))
        # By path; None: it cannot be used.
        self._files: dict[str, KeptFile | None] = {}

    def find(
        self, dataset: LanceDataset, fragment: LanceFragment, work: FragmentWork
    ) -> KeptRows | None:
        """What is kept of the rows that are wanted; None when there is nothing."""
        notes = self._notes if dataset.has_stable_row_ids else []
        if not (notes or len(self._parts)):
            return None
        found = KeptRows(work.physical_rows)
        rows = scan_all(dataset, [work.id])
        if work.need is not None:
            rows = rows.take(unpack(work.need, work.physical_rows)[rows.offsets])
        for note in notes:
            file = self._open_file(note) if len(rows.ids) else None
            if file is not None:
                which, places = file.find(dataset, self._inputs, rows)
                found.add(file, rows.offsets[which], places)
                rows = rows.take(~found.mask[rows.offsets])
        self._find_in_parts(found, dataset, fragment, rows)
        return found if found.mask.any() else None

    def _find_in_parts(
        self, found: KeptRows, dataset: LanceDataset, fragment: LanceFragment, rows: RowPlaces
    ) -> None:
        near = self._parts.near(rows.ids)
        # Only rows that some part has are read.
        held = np.zeros(fragment.physical_rows, bool)
        for part in near:
            held[rows.offsets[is_among(rows.ids, part.keys)]] = True
        if not held.any():
            return
        for batch in scan_rows(dataset, fragment, self._inputs, held, with_row_id=True):
            ids, offsets = as_ids(batch.column(ROW_ID)), offsets_of(batch)
            inputs = digest_rows(batch.columns[: len(self._inputs)], len(ids))
            left = np.ones(len(ids), bool)
            for part in near:
                which, places = part.find(ids, inputs, left)
                found.add(part, offsets[which], places)
                left[which] = False

    def _open_file(self, note: Checkpoint) -> KeptFile | None:
        """The file of a note, without what another job failed on, which may go well now."""
        path = note.file.path
        if path not in self._files:
            is_own = note.origin is not None and note.origin.job == self._job
            file = None
            if is_own or not self._own_only:
                file = KeptFile.load(self._location, note, self._kinds, self._declared, self._job)
            self._files[path] = file if is_own or file is None else file.without_failed()
        return self._files[path]


def wanted_rows(dataset: LanceDataset, fragment: LanceFragment, work: FragmentWork) -> Any:
    """Booleans by offset: the rows that are alive and to be computed."""
    live = live_rows(dataset, fragment)
    return live if work.need is None else live & unpack(work.need, work.physical_rows)
