"""Remove any set of rows, as changed fragments for a commit. Everything here blocks.

Lance deletes by a predicate, and takes seconds for every ten thousand ids in one. So the files that
list deleted rows are written here, as the format describes: a Roaring bitmap of the offsets within
the fragment.
"""

import secrets
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from lance import LanceDataset
from lance.fragment import DeletionFile

from penstock.lance.diff.row_sets import Ids, is_among, split_runs
from penstock.lance.read.row_ids import scan_rows
from penstock.lance.session.remote import Location
from penstock.lance.storage import files

SCAN_ROWS = 1_048_576
# Of Roaring's portable format without runs.
COOKIE = 12346
ARRAY_SIZE = 4096


@dataclass(frozen=True, slots=True)
class Removal:
    """The fragments that go, those that lose rows, and how many rows are removed."""

    removed: list[int]
    updated: list[Any]
    rows: int
    # The files that were written for it.
    files: tuple[str, ...] = ()


def remove_rows(dataset: LanceDataset, location: Location, ids: Ids | Literal["all"]) -> Removal:
    """Remove rows from the open version; ids that it does not have are ignored."""
    fragments = {fragment.fragment_id: fragment for fragment in dataset.get_fragments()}
    if isinstance(ids, str):
        return Removal(list(fragments), [], dataset.count_rows())
    live: defaultdict[int, list[Any]] = defaultdict(list)
    gone: defaultdict[int, list[Any]] = defaultdict(list)
    wanted = np.sort(ids)
    for found, of, offsets in scan_rows(dataset, fragments if len(ids) else (), None, SCAN_ROWS):
        taken = is_among(found, wanted)
        for run in split_runs(of):
            live[int(of[run.start])].append(offsets[run])
            gone[int(of[run.start])].append(offsets[run][taken[run]])
    removed, updated, rows = [], [], 0
    for id, parts in gone.items():
        count = sum(map(len, parts))
        rows += count
        if count and count == sum(map(len, live[id])):
            removed.append(id)
        elif count:
            is_live = np.zeros(fragments[id].physical_rows, bool)
            is_live[np.concatenate(live[id])] = True
            is_live[np.concatenate(parts)] = False
            updated.append(_delete(dataset, location, id, np.flatnonzero(~is_live)))
    return Removal(removed, updated, rows, tuple(map(_name_file, updated)))


def keep_fragments(dataset: LanceDataset, location: Location, removal: Removal) -> Removal:
    """The same removal for a commit that must name all fragments: those that go lose every row."""
    emptied = []
    for id in removal.removed:
        fragment = dataset.get_fragment(id)
        assert fragment is not None
        emptied.append(_delete(dataset, location, id, np.arange(fragment.physical_rows)))
    updated = [*removal.updated, *emptied]
    return Removal([], updated, removal.rows, tuple(map(_name_file, updated)))


def list_files(dataset: LanceDataset) -> set[str]:
    """The files that list deleted rows in the open version."""
    found = (fragment.metadata for fragment in dataset.get_fragments())
    return {_name_file(each) for each in found if each.deletion_file is not None}


def encode_bitmap(values: Ids) -> bytes:
    """Encode sorted numbers below 2^32 as a Roaring bitmap in its portable format."""
    keys, starts = np.unique(values >> 16, return_index=True)
    parts = np.split((values & 0xFFFF).astype("<u2"), starts[1:])
    bodies = [_encode_container(part) for part in parts]
    heads = np.stack([keys, [len(part) - 1 for part in parts]], axis=1).astype("<u2")
    first = 8 + 8 * len(keys)
    lengths = [len(body) for body in bodies]
    offsets = first + np.concatenate([[0], np.cumsum(lengths)[:-1]])
    start = np.array([COOKIE, len(keys)], "<u4").tobytes()
    return b"".join([start, heads.tobytes(), offsets.astype("<u4").tobytes(), *bodies])


def _encode_container(low: Any) -> bytes:
    if len(low) <= ARRAY_SIZE:
        return bytes(low.tobytes())
    bits = np.zeros(65_536, np.uint8)
    bits[low] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def _delete(dataset: LanceDataset, location: Location, id: int, dead: Ids) -> Any:
    """The metadata of a fragment with these deleted rows."""
    fragment = dataset.get_fragment(id)
    assert fragment is not None
    metadata = fragment.metadata
    number = secrets.randbits(63)
    metadata.deletion_file = DeletionFile(dataset.version, number, "bitmap", len(dead), None)
    files.write_new(location.place(), _name_file(metadata), encode_bitmap(dead))
    return metadata


def _name_file(fragment: Any) -> str:
    return str(fragment.deletion_file.path(fragment.id))
