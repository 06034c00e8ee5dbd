"""Read rows of one version by their ids, in whole ranges where many are wanted. Blocks.

Lance also finds single rows by id, but ten times slower than it scans; so when many are wanted, we
learn each row's place in its fragment, in runs of neighbours.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.errors import InvalidTableState
from penstock.lance.columns.fields import parse_path
from penstock.lance.diff.equal import as_ids, combine
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.read.outside_blobs import check_blobs
from penstock.lance.read.scans import quote_parts

SCAN_ROWS = 65_536
# A range is scanned when at least one in so many of its rows is wanted.
DENSE = 4
# Lance looks rows up itself while no more than one in so many is wanted, and not too many for one
# filter: that costs microseconds per row, while learning the places of all rows costs a fraction of
# that for each of them.
FEW, MAX_FEW = 100, 1_000


class RowReader:
    """Some fragments of a version, whose rows can be read."""

    def __init__(self, dataset: LanceDataset, fragments: Collection[int]) -> None:
        self.dataset = dataset
        self._fragments = {
            fragment.fragment_id: fragment
            for fragment in dataset.get_fragments()
            if fragment.fragment_id in fragments
        }
        self._rows = sum(fragment.physical_rows for fragment in self._fragments.values())
        self._asked = 0
        self._known_runs: _Runs | None = None

    def has(self, ids: Ids) -> Mask:
        """Whether each row is in one of the fragments."""
        if not len(ids):
            return np.zeros(0, bool)
        if self._is_few(ids):
            return np.isin(ids, as_ids(self._look_up(ids, [])["_rowid"]))
        found: Mask = self._runs.find(ids) >= 0
        return found

    def read(self, ids: Ids, paths: Sequence[str]) -> list[pa.Array]:
        """Fields of existing rows, in the order of the ids."""
        if not len(ids) or not paths:
            kinds = [self._take(ids, [path])[0].type for path in paths]
            return [pa.array([], kind) for kind in kinds]
        if self._is_few(ids):
            return self._read_few(ids, paths)
        fragments, places = self._runs.locate(ids)
        parts: list[list[pa.Array]] = []
        order: list[Any] = []
        sparse: list[Any] = []
        for id in np.unique(fragments).tolist():
            rows = np.flatnonzero(fragments == id)
            first, last = int(places[rows].min()), int(places[rows].max())
            if last - first >= DENSE * len(rows):
                sparse.append(rows)
                continue
            found = self._scan(id, first, last, paths)
            wanted = places[rows] - first
            if len(wanted) != last - first + 1 or (np.diff(wanted) != 1).any():
                found = [array.take(pa.array(wanted)) for array in found]
            parts.append(found)
            order.append(rows)
        if sparse:
            rows = np.concatenate(sparse)
            parts.append(self._take(ids[rows], paths))
            order.append(rows)
        return _assemble(parts, np.concatenate(order))

    def read_bytes(self, ids: Ids, path: str) -> pa.Array:
        """A blob field of existing rows, with its bytes; reads no other rows."""
        fragments, places = self._runs.locate(ids)
        order = np.lexsort((places, fragments))
        fragments, places = fragments[order], places[order]
        is_next = (np.diff(places) == 1) & (np.diff(fragments) == 0)
        parts = []
        for run in np.split(np.arange(len(ids)), np.flatnonzero(~is_next) + 1):
            first, last = int(places[run[0]]), int(places[run[-1]])
            parts.append(self._scan(int(fragments[run[0]]), first, last, [path], "all_binary"))
        (found,) = _assemble(parts, order)
        return found

    @property
    def _runs(self) -> "_Runs":
        """The place of every row, learned on first use."""
        if self._known_runs is None:
            runs = _Runs()
            for id, fragment in self._fragments.items():
                at = 0
                for ids in _scan_ids(self.dataset, fragment):
                    runs.add(id, at, ids)
                    at += len(ids)
            runs.sort()
            # Set only now, so that a scan that failed half-way is repeated.
            self._known_runs = runs
        return self._known_runs

    def _is_few(self, ids: Ids) -> bool:
        """Whether Lance should look these up, given what it has looked up before."""
        self._asked += len(ids)
        return self._known_runs is None and self._asked <= min(self._rows // FEW, MAX_FEW)

    def _read_few(self, ids: Ids, paths: Sequence[str]) -> list[pa.Array]:
        table = self._look_up(ids, paths)
        found = as_ids(table["_rowid"])
        if not np.isin(ids, found).all():
            raise self._lost_rows()
        order = np.argsort(found)
        places = pa.array(order[np.searchsorted(found[order], ids)])
        return [combine(table[f"c{n}"]).take(places) for n in range(len(paths))]

    def _look_up(self, ids: Ids, paths: Sequence[str]) -> pa.Table:
        """Those of the rows that exist, in any order."""
        with translated():
            return self.dataset.scanner(
                columns=self._columns(paths) if paths else [],
                filter=f"_rowid IN ({', '.join(map(str, ids.tolist()))})",
                fragments=list(self._fragments.values()),
                with_row_id=True,
            ).to_table()

    def _lost_rows(self) -> InvalidTableState:
        return InvalidTableState(f"version {self.dataset.version} lost some of its rows")

    def _scan(
        self,
        fragment: int,
        first: int,
        last: int,
        paths: Sequence[str],
        blobs: Literal["all_binary"] | None = None,
    ) -> list[pa.Array]:
        columns = self._columns(paths)
        rows: dict[str, Any] = {
            "fragments": [self._fragments[fragment]],
            "offset": first,
            "limit": last - first + 1,
            "scan_in_order": True,
        }
        with translated():
            if blobs is not None:
                check_blobs(self.dataset, columns.values(), **rows)
            found = self.dataset.scanner(columns=columns, blob_handling=blobs, **rows).to_table()
        if found.num_rows != last - first + 1:
            raise self._lost_rows()
        return [combine(found[f"c{n}"]) for n in range(len(paths))]

    def _take(self, ids: Ids, paths: Sequence[str]) -> list[pa.Array]:
        columns = {**self._columns(paths), "_rowid": "_rowid"}
        with translated():
            found = self.dataset._take_rows(pa.array(ids, pa.uint64()), columns=columns)
        if not np.array_equal(as_ids(found["_rowid"]), ids):
            raise self._lost_rows()
        return [combine(found[f"c{n}"]) for n in range(len(paths))]

    def _columns(self, paths: Sequence[str]) -> dict[str, str]:
        return {f"c{n}": _expression(self.dataset, path) for n, path in enumerate(paths)}


class _Runs:
    """Runs of ids whose rows are also neighbours in a fragment."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._starts: Any = None
        self._table: Any = None

    def add(self, fragment: int, first: int, ids: Ids) -> None:
        """Add rows of a fragment, the first of which is at that place."""
        if not len(ids):
            return
        at = np.concatenate([[0], np.flatnonzero(np.diff(ids) != 1) + 1])
        lengths = np.diff(np.concatenate([at, [len(ids)]]))
        self._parts.append(np.stack([ids[at], lengths, np.full(len(at), fragment), first + at]))

    def sort(self) -> None:
        table = np.concatenate([np.empty((4, 0), np.int64), *self._parts], axis=1)
        self._table = table[:, np.argsort(table[0], kind="stable")]
        self._starts, self._parts = self._table[0], []

    def find(self, ids: Ids) -> Ids:
        """The run of each id, or -1."""
        if not len(self._starts):
            return np.full(len(ids), -1)
        run = np.searchsorted(self._starts, ids, side="right") - 1
        inside = (run >= 0) & (ids < self._starts[run] + self._table[1][run])
        return np.where(inside, run, -1)

    def locate(self, ids: Ids) -> tuple[Ids, Ids]:
        """The fragment of each id, and its place among the live rows there."""
        run = self.find(ids)
        return self._table[2][run], self._table[3][run] + ids - self._starts[run]


def _scan_ids(dataset: LanceDataset, fragment: Any) -> Iterator[Ids]:
    with translated():
        scanner = dataset.scanner(
            columns=[],
            fragments=[fragment],
            with_row_id=True,
            batch_size=SCAN_ROWS,
            scan_in_order=True,
        )
        for batch in scanner.to_batches():
            yield as_ids(batch.column("_rowid"))


def _assemble(parts: list[list[pa.Array]], order: Any) -> list[pa.Array]:
    """Assemble the parts' rows, whose places are in `order`, column by column."""
    columns = [pa.concat_arrays(each) for each in zip(*parts, strict=True)]
    if (np.diff(order) == 1).all():
        return columns
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return [column.take(pa.array(back)) for column in columns]


def _expression(dataset: LanceDataset, path: str) -> str:
    """How to ask Lance for a field; a field inside a list comes with the whole list."""
    parts = parse_path(path)
    kind = dataset.schema.field(parts[0]).type
    taken = [parts[0]]
    for part in parts[1:]:
        index = kind.get_field_index(part) if hasattr(kind, "get_field_index") else -1
        if index < 0:
            break
        taken.append(part)
        kind = kind.field(index).type
    return quote_parts(tuple(taken))
