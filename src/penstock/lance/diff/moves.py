"""Rows that compactions moved: they have the values that they had, so none has to be read."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.lance.columns.fields import get_field
from penstock.lance.diff.fragments import all_ids, show_files
from penstock.lance.diff.origins import read_compactions

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.diff.masks import Mask
    from penstock.lance.diff.row_diff import Rows


def find_unmoved(
    now: "LanceDataset", then: "LanceDataset", paths: Sequence[str], new: "Rows", old: "Rows"
) -> "Mask":
    """Which rows, given with their places in both versions, only compactions have touched."""
    found = np.zeros(len(new.ids), bool)
    if not len(found) or not paths:
        return found
    wanted = _field_ids(now, paths)
    if wanted != _field_ids(then, paths):
        return found
    ids = {id for each in wanted for id in each}
    files = {f.fragment_id: show_files(f.data_files(), ids) for f in then.get_fragments()}
    compactions = read_compactions(now)
    for fragment in now.get_fragments():
        held = show_files(fragment.data_files(), ids)
        if fragment.metadata.overlays or (of := _origins(held, files, compactions, ids)) is None:
            continue
        rows = new.fragments == fragment.fragment_id
        # A row may have been elsewhere then, and come back by a restore.
        found |= rows & np.isin(old.fragments, list(of))
    return found


def _origins(
    held: tuple[str, ...],
    files: Mapping[int, tuple[str, ...]],
    compactions: Mapping[str, list[Any]],
    ids: set[int],
) -> set[int] | None:
    """The fragments of then that a fragment with these files was put together from."""
    # All columns of a new fragment are in one file; another one came later.
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


def _field_ids(dataset: "LanceDataset", paths: Sequence[str]) -> list[list[int]]:
    return [all_ids(get_field(dataset, path).lance) for path in paths]
