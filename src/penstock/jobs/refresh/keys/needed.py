"""Which rows of each table the query needs for some keys; the others cannot give rows with them.

Tables with columns of the key begin; what is joined to them follows, up the tree of joins as far as
every row needs its match, and then down to all tables.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.jobs.refresh.keys.key_sets import KeySet
from penstock.jobs.refresh.keys.source_rows import FoundRows, SourceRows
from penstock.jobs.refresh.keys.touched import list_key_paths
from penstock.lance.diff.masks import Mask
from penstock.model.views import Branch, Occurrence

Condition = tuple[Sequence[str], KeySet]


def find_needed(
    branch: Branch, sources: Mapping[str, SourceRows], touched: KeySet
) -> list[FoundRows | None]:
    """For each occurrence the rows that touched keys need; None for all of them."""
    occurrences = branch.occurrences
    conditions = [_start(branch, number, touched) for number in range(len(occurrences))]
    found: list[FoundRows | None] = [None] * len(occurrences)
    for number in reversed(range(len(occurrences))):
        occurrence = occurrences[number]
        if not conditions[number]:
            continue
        rows = _find(branch, sources, number, conditions[number])
        found[number] = rows
        if occurrence.parent is not None and _is_bound(branch, number, touched):
            mine, its = zip(*occurrence.pairs, strict=True)
            wanted = KeySet([rows.columns[path] for path in mine])
            conditions[occurrence.parent].append((its, wanted))
    for number, occurrence in enumerate(occurrences):
        above = None if occurrence.parent is None else found[occurrence.parent]
        if above is None:
            continue
        mine, its = zip(*occurrence.pairs, strict=True)
        wanted = KeySet([above.columns[path] for path in its])
        known = found[number]
        if known is None:
            found[number] = _find(branch, sources, number, [(mine, wanted)])
        else:
            found[number] = known.take(wanted.contains([known.columns[path] for path in mine]))
    return found


def _start(branch: Branch, number: int, touched: KeySet) -> list[Condition]:
    """The condition that the keys themselves are for an occurrence."""
    mine = list_key_paths(branch, number)
    if not mine:
        return []
    taken = pa.array(_list_own(branch, touched))
    columns = [pc.filter(touched.keys[place], taken) for place, _ in mine]
    if _is_optional(branch, number) and not _is_bound(branch, number, touched):
        # Rows without a match have these keys, too.
        return []
    return [([path for _, path in mine], KeySet(columns))]


def _list_own(branch: Branch, touched: KeySet) -> Mask:
    """Which keys rows of the branch can have: it gives null for some columns."""
    found = np.ones(len(touched), bool)
    for key, column in zip(branch.keys, touched.keys, strict=True):
        if key is None:
            found &= np.asarray(pc.is_null(column))
    return found


def _is_optional(branch: Branch, number: int) -> bool:
    """Whether rows may do without a row of this occurrence."""
    at: int | None = number
    while at is not None:
        occurrence = branch.occurrences[at]
        if occurrence.join == "left":
            return True
        at = occurrence.parent
    return False


def _is_bound(branch: Branch, number: int, touched: KeySet) -> bool:
    """Whether all rows with touched keys have a match in this occurrence."""
    occurrence: Occurrence = branch.occurrences[number]
    if occurrence.join != "left":
        return occurrence.join == "inner"
    mine = list_key_paths(branch, number)
    taken = _list_own(branch, touched)
    have = np.zeros(len(touched), bool)
    for place, _ in mine:
        have |= np.asarray(pc.is_valid(touched.keys[place]))
    return bool(mine) and bool(have[taken].all())


def _find(
    branch: Branch, sources: Mapping[str, SourceRows], number: int, conditions: list[Condition]
) -> FoundRows:
    """The rows that meet the conditions, with the columns that join them to others."""
    occurrence = branch.occurrences[number]
    paths = [mine for mine, _ in occurrence.pairs]
    for each in branch.occurrences:
        if each.parent == number:
            paths += [its for _, its in each.pairs]
    return sources[occurrence.source].find(paths, conditions)
