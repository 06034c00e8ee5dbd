"""Values that were computed before, found again for the rows of a fragment.

What was left for the same fragment is found by the places of its rows. What was computed for
another one, in another version, is found by row ids, and holds where the inputs are what they were.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.errors import VanishedFile
from penstock.jobs.backfill.plan import FragmentWork
from penstock.jobs.kept.files import KeptFile, KeptPart, Provider
from penstock.jobs.kept.parts import Part, find_parts
from penstock.jobs.kept.work import find_same, open_origin
from penstock.lance.diff.masks import unpack
from penstock.lance.diff.row_diff import scan_all
from penstock.lance.diff.row_sets import is_among
from penstock.lance.read.scans import live_rows
from penstock.lance.write.column_files import Piece, Pieces

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

    from penstock.jobs.engine.checkpoints import Checkpoint
    from penstock.lance.session.remote import Location
    from penstock.lance.storage.lake import Place

# Has the function compute the rows of a mask.
Compute = Callable[[Any], Iterator[Piece]]
# How it shows that a file of values is not there any more.
GONE = (FileNotFoundError, VanishedFile)


class Order(Protocol):
    """What a task was told of work that was done before."""

    @property
    def job(self) -> str: ...
    @property
    def kept(self) -> str: ...
    @property
    def own_only(self) -> bool: ...
    @property
    def files(self) -> "Sequence[Checkpoint]": ...
    @property
    def parts(self) -> Sequence[str]: ...


@dataclass(slots=True, eq=False)
class Known:
    """The rows of a fragment whose values are known: who has each, and where."""

    sources: list[Provider]
    # By offset: the number of the source, or -1, and the place in it.
    owners: Any
    places: Any
    # Found out on the way: rows that were taken, and those without a value among them.
    rows: int = 0
    failed: list[int] = field(default_factory=list)

    @property
    def mask(self) -> Any:
        return self.owners >= 0

    def merge(
        self, wanted: Any, computed: Iterator[Piece], compute: Compute | None = None
    ) -> Iterator[Piece]:
        """What is known of the rows that are wanted, and the others as they are computed.

        Rows whose values are gone by the time they are read are computed then.
        """
        streams = {-1: Pieces(computed)}
        rows = np.flatnonzero(wanted)
        runs = np.split(rows, np.flatnonzero(np.diff(self.owners[rows])) + 1)
        for run in runs if len(rows) else ():
            owner = int(self.owners[run[0]])
            if owner not in streams:
                streams[owner] = Pieces(self._take(owner, wanted, compute))
            yield from streams[owner].below(int(run[-1]) + 1)
            if streams[owner].end is None:
                # Its values are not needed in memory any more.
                del streams[owner]

    def _take(self, owner: int, wanted: Any, compute: Compute | None) -> Iterator[Piece]:
        source = self.sources[owner]
        held = wanted & (self.owners == owner)
        offsets = np.flatnonzero(held)
        stream = source.stream(self.places[offsets])
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
            yield Piece(here, values)


class Carrier:
    """What a task knows of work that was done before."""

    def __init__(
        self,
        order: Order,
        location: "Location",
        place: "Place",
        kinds: "pa.Schema",
        inputs: Sequence[str],
        *,
        can_read_files: bool = True,
    ) -> None:
        self._order = order
        self._location = location
        self._place = place
        self._kinds = kinds
        self._inputs = inputs
        self._folder = order.kept or order.job
        self._files = order.files if can_read_files else ()
        # By name; None: it cannot be used.
        self._loaded: dict[str, Provider | None] = {}

    def find(
        self, dataset: "LanceDataset", fragment: "LanceFragment", work: FragmentWork
    ) -> Known | None:
        """What is known of the rows that are wanted; None when there is nothing to look at."""
        here = find_parts(self._place, self._folder, work.id, work.key)
        elsewhere = bool(self._files or self._order.parts) and dataset.has_stable_row_ids
        if not (here or elsewhere):
            return None
        known = Known(
            [], np.full(work.physical_rows, -1, np.int32), np.full(work.physical_rows, -1, np.int64)
        )
        wanted = wanted_rows(dataset, fragment, work)
        for part in here:
            if (source := self._part(part)) is not None:
                held = source.rows.offsets
                taken = wanted[held] & (known.owners[held] < 0)
                _own(known, source, held[taken], source.places[taken])
        if elsewhere:
            self._find_moved(known, dataset, work.id, wanted)
        return known

    def _find_moved(
        self, known: Known, dataset: "LanceDataset", fragment: int, wanted: Any
    ) -> None:
        """By row ids, in what was computed for other fragments and other versions."""
        rows = scan_all(dataset, [fragment])
        rows = rows.take(wanted[rows.offsets] & (known.owners[rows.offsets] < 0))
        for source in self._sources():
            if not len(rows.ids):
                return
            mine = np.flatnonzero(is_among(rows.ids, source.rows.ids))
            then = (
                open_origin(self._location, source.origin, self._order.job) if len(mine) else None
            )
            if then is None:
                continue
            new = rows.take(mine)
            index = np.searchsorted(source.rows.ids, new.ids)
            same = find_same(dataset, then, self._inputs, new, source.rows.take(index))
            _own(known, source, new.offsets[same], source.places[index[same]])
            left = np.ones(len(rows.ids), bool)
            left[mine[same]] = False
            rows = rows.take(left)

    def _sources(self) -> Iterator[Provider]:
        """The newest first."""
        for note in reversed(self._files):
            if (found := self._file(note)) is not None and found.has_ids:
                yield found
        for name in self._order.parts:
            if (found := self._part(Part(name, 0, 0))) is not None and found.has_ids:
                yield found

    def _part(self, part: Part) -> Provider | None:
        if part.name not in self._loaded:
            made = KeptPart.load(self._place, self._folder, part, self._kinds)
            self._loaded[part.name] = self._usable(made)
        return self._loaded[part.name]

    def _file(self, note: "Checkpoint") -> Provider | None:
        if note.file.path not in self._loaded:
            made = KeptFile.load(self._location, self._place, note, self._kinds, self._order.job)
            self._loaded[note.file.path] = self._usable(made)
        return self._loaded[note.file.path]

    def _usable(self, source: Provider | None) -> Provider | None:
        """Without what another job failed on, which may go well now."""
        if source is None or source.origin.job in ("", self._order.job):
            return source
        return None if self._order.own_only else source.without_failed()


def wanted_rows(dataset: "LanceDataset", fragment: "LanceFragment", work: FragmentWork) -> Any:
    """Booleans by offset: the rows that are alive and to be computed."""
    live = live_rows(dataset, fragment)
    return live if work.need is None else live & unpack(work.need, work.physical_rows)


def _own(known: Known, source: Provider, offsets: Any, places: Any) -> None:
    if len(offsets):
        known.owners[offsets] = len(known.sources)
        known.places[offsets] = places
        known.sources.append(source)
