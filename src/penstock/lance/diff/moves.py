"""Rows that compactions moved: their values are unchanged, so none has to be read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lance import LanceDataset

from penstock.lance.columns.fields import get_field
from penstock.lance.diff.compactions import read_compactions
from penstock.lance.diff.fragments import all_ids, show_files
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import RowPlaces


def find_unmoved(
    now: LanceDataset,
    then: LanceDataset,
    paths: Sequence[str],
    paths_then: Sequence[str],
    new: RowPlaces,
    old: RowPlaces,
) -> Mask:
    """Which rows, given with their places in both versions, only compactions have touched."""
    found = np.zeros(len(new.ids), bool)
    if not len(found) or not paths:
        return found
    wanted = _field_ids(now, paths)
    if wanted != _field_ids(then, paths_then):
        return found
    ids = {id for each in wanted for id in each}
    files = {f.fragment_id: show_files(f.data_files(), ids) for f in then.get_fragments()}
    compactions = read_compactions(now)
    for fragment in now.get_fragments():
        held = show_files(fragment.data_files(), ids)
        if fragment.metadata.overlays or (of := _origins(held, files, compactions, ids)) is None:
            continue
        rows = new.fragments == fragment.fragment_id
        # A row may have been elsewhere then, and come back through a restore.
        found |= rows & np.isin(old.fragments, list(of))
    return found


def _origins(
    held: tuple[str, ...],
    files: Mapping[int, tuple[str, ...]],
    compactions: Mapping[str, list[Any]],
    ids: set[int],
) -> set[int] | None:
    """The earlier fragments that a fragment with these files was compacted from."""
    # A new fragment has all columns in one file; a second file came later.
    path = held[0].rpartition(":")[0] if len(held) == 1 else None
    old = compactions.get(path) if path is not None else None
    if not old:
        return None
    found: set[int] = set()
    for each in old:
        shown = show_files(each.files, ids)
        if each.overlays:
            return None
        if files.get(each.id) == shown:
            found.add(each.id)
        elif (deeper := _origins(shown, files, compactions, ids)) is not None:
            found |= deeper
        else:
            return None
    return found


def _field_ids(dataset: LanceDataset, paths: Sequence[str]) -> list[list[int]]:
    return [all_ids(get_field(dataset, path).lance) for path in paths]
