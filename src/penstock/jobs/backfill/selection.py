"""Rows of a version by their ids: those that a backfill may compute, and those that it left.

All of it blocks.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from lance import LanceDataset

from penstock.jobs.backfill.left_rows import LeftRows
from penstock.jobs.backfill.plan_rows import FragmentRows, stale_rows
from penstock.jobs.backfill.row_states import FRESH, REASONS, Codes
from penstock.lance.diff.masks import Mask
from penstock.lance.diff.row_sets import Ids, make_row_set
from penstock.lance.errors import translated
from penstock.lance.read.by_id import RowReader
from penstock.lance.read.row_ids import scan_rows


@dataclass(frozen=True, slots=True)
class Scope:
    """Which rows a backfill may compute: all of these at once."""

    where: str | None = None
    # Rows that this version has.
    version: int | None = None
    row_ids: Collection[int] | None = None
    # Fresh rows as well.
    force: bool = False
    # Of so many fragments that have such rows.
    num_frags: int | None = None

    @property
    def is_everything(self) -> bool:
        """Whether every row is computed, whatever is known of it."""
        limits = self.where, self.version, self.row_ids, self.num_frags
        return self.force and limits == (None,) * len(limits)


def select(
    dataset: LanceDataset, branch: str, fragments: Sequence[FragmentRows], scope: Scope
) -> list[FragmentRows]:
    """Add which rows are alive and asked for, where that matters."""
    open_ones = {
        rows.state.id: rows.state
        for rows in fragments
        if rows.state.rows and (scope.force or not _is_fresh(rows.codes))
    }
    narrow = scope.version is not None or scope.row_ids is not None
    scanned = [id for id, state in open_ones.items() if narrow or state.deletions]
    live = {id: np.zeros(open_ones[id].physical_rows, bool) for id in scanned}
    chosen = {id: np.zeros(open_ones[id].physical_rows, bool) for id in scanned}
    then = _open_version(dataset, branch, scope) if scanned else None
    for ids, of, offsets in scan_rows(dataset, scanned):
        taken = _is_wanted(ids, scope, then)
        for id in np.unique(of).tolist():
            mine = of == id
            live[id][offsets[mine]] = True
            chosen[id][offsets[mine]] = taken[mine]
    selected: dict[int, Mask] = chosen if narrow else {}
    if scope.where is not None:
        matching = {id: np.zeros(s.physical_rows, bool) for id, s in open_ones.items()}
        for _, of, offsets in scan_rows(dataset, open_ones.keys(), scope.where):
            for id in np.unique(of).tolist():
                matching[id][offsets[of == id]] = True
        selected = {id: mask & selected.get(id, mask) for id, mask in matching.items()}
    return [
        replace(rows, live=live.get(rows.state.id), selected=selected.get(rows.state.id))
        for rows in fragments
    ]


def _is_fresh(codes: Codes | int) -> bool:
    return codes == FRESH if isinstance(codes, int) else not (codes > FRESH).any()


def _open_version(dataset: LanceDataset, branch: str, scope: Scope) -> RowReader | None:
    if scope.version is None or scope.version == dataset.version:
        return None
    with translated():
        then = dataset.checkout_version((branch or None, scope.version))
    return RowReader(then, [fragment.fragment_id for fragment in then.get_fragments()])


def _is_wanted(ids: Ids, scope: Scope, then: RowReader | None) -> Mask:
    wanted = np.ones(len(ids), bool)
    if scope.row_ids is not None:
        wanted &= np.isin(ids, np.fromiter(scope.row_ids, np.int64, len(scope.row_ids)))
    if then is not None:
        wanted &= then.has(ids)
    return wanted


def find_left(dataset: LanceDataset, fragments: Iterable[FragmentRows]) -> LeftRows:
    """The ids of all rows that are not fresh, by why they are not."""
    stale = {
        rows.state.id: np.where(found, rows.codes, FRESH)
        for rows in fragments
        if (found := stale_rows(rows)) is not None
    }
    parts: dict[int, list[Ids]] = {code: [] for code in REASONS}
    for ids, of, offsets in scan_rows(dataset, stale.keys()):
        for id in np.unique(of).tolist():
            mine = of == id
            codes = stale[id][offsets[mine]]
            for code in np.unique(codes[codes > FRESH]).tolist():
                parts[code].append(ids[mine][codes == code])
    return LeftRows({code: make_row_set(found) for code, found in parts.items() if found})
