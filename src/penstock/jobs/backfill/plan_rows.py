"""The plan of a backfill by a function: which rows are computed, and why.

Every row that is alive is fresh, or has a reason not to be (`jobs.backfill.row_states`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    RowCounts,
    UpToDate,
    Watermark,
    fragment_key,
)
from penstock.jobs.backfill.row_states import (
    CODES,
    FRESH,
    REASONS,
    Codes,
    pack_codes,
    to_counts,
    unpack_codes,
)
from penstock.jobs.engine.fragment_work import FragmentWork, is_file_of
from penstock.lance.diff.masks import Mask, pack
from penstock.model.fragments import FragmentState

FORCED = "forced"
WORDS = {
    "never_filled": "never filled",
    "inputs_changed": "with other inputs",
    "function_changed": "filled by another version of the function",
    "foreign_value": "with values that no backfill wrote",
    "failed": "that the function failed on",
    FORCED: "asked for by force",
}


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """A fragment and its rows: one code for each physical row, or one that all have."""

    state: FragmentState
    codes: Codes | int
    # None: nothing is deleted.
    live: Mask | None = None
    # Which rows this backfill may compute; None: all.
    selected: Mask | None = None


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """One version of a table, as a backfill by a function sees it."""

    version: int
    fragments: tuple[FragmentRows, ...]
    watermark: Watermark | None = None
    # Why less is known than might be.
    notes: tuple[str, ...] = ()
    # Whether every row was looked at, as far as its file does not tell.
    is_known: bool = True


def plan_rows(snapshot: RowSnapshot, options: BackfillOptions) -> UpToDate | Fill:
    """Decide what a backfill by a function computes."""
    parts = [part for rows in snapshot.fragments if (part := _divide(rows, options)) is not None]
    # A fragment without a row to compute keeps its file.
    needed = [part for part in parts if part.rows]
    taken = needed[: options.num_frags]
    total = sum(rows.state.rows for rows in snapshot.fragments)
    stale = sum(part.stale for part in parts)
    left = stale - sum(part.stale - part.left for part in taken)
    counts = count_rows(snapshot.fragments) if snapshot.is_known else None
    if not taken:
        return UpToDate(
            _why_nothing(snapshot, stale, total),
            rows_left=left,
            calls_by_reason=_count([]),
            counts=counts,
        )
    calls = _count(taken)
    computed = sum(part.rows for part in taken)
    return Fill(
        "full" if computed == total else "incremental",
        _why(snapshot, calls, len(taken), len(needed)),
        tuple(part.work for part in taken),
        rows_left=left,
        calls_by_reason=calls,
        counts=counts,
    )


def count_rows(fragments: Iterable[FragmentRows]) -> RowCounts:
    """How many rows are in each state."""
    total, by_code = 0, Counter[int]()
    for rows in fragments:
        total += rows.state.rows
        stale = stale_rows(rows)
        if stale is not None:
            by_code.update(_count_codes(rows, stale))
    return to_counts(total, by_code)


def stale_rows(rows: FragmentRows) -> Mask | None:
    """The rows of a fragment that are alive and not fresh; None when there is none."""
    if isinstance(rows.codes, int):
        if rows.codes == FRESH or not rows.state.rows:
            return None
        found = np.ones(rows.state.physical_rows, bool)
    else:
        found = rows.codes > FRESH
    if rows.live is not None:
        found = found & rows.live
    return found if found.any() else None


@dataclass(frozen=True, slots=True)
class _Part:
    """What a fragment would cost: rows to compute, rows that are not fresh, before and after."""

    work: FragmentWork
    rows: int
    stale: int
    left: int
    reasons: Mapping[str, int]


def _divide(rows: FragmentRows, options: BackfillOptions) -> _Part | None:
    state = rows.state
    stale = stale_rows(rows)
    forced = options.force and not _did(state, options)
    if stale is None and not (forced and state.rows):
        return None
    live = np.ones(state.physical_rows, bool) if rows.live is None else rows.live
    stale = np.zeros(state.physical_rows, bool) if stale is None else stale
    need = live if forced else stale
    if rows.selected is not None:
        need = need & rows.selected
    left = stale & ~need
    count = int(need.sum())
    work = FragmentWork(
        state.id,
        fragment_key(state, options),
        state.physical_rows,
        state.rows,
        count,
        state.input_files,
        state.target_files,
        need=None if count == state.rows else pack(need),
        left=pack(left) if left.any() else None,
        reasons=None if isinstance(rows.codes, int) else pack_codes(rows.codes),
        reason=rows.codes if isinstance(rows.codes, int) else 0,
        deletions=state.deletions,
        dead=None if rows.live is None else pack(~rows.live),
    )
    counts = _count_codes(rows, need)
    reasons = {FORCED: count} if forced else {REASONS[code]: n for code, n in counts.items() if n}
    return _Part(work, count, int(stale.sum()), int(left.sum()), reasons)


def _did(state: FragmentState, options: BackfillOptions) -> bool:
    """Whether this job, perhaps an earlier attempt of it, has been through the fragment."""
    files = state.target_files
    return (
        len(files) == 1
        and is_file_of(files[0], options.job)
        and files[0].split("-")[1] == fragment_key(state, options)
    )


def _count_codes(rows: FragmentRows, chosen: Mask) -> dict[int, int]:
    """How many of the chosen rows have each code."""
    if isinstance(rows.codes, int):
        return {rows.codes: int(chosen.sum())}
    return dict(enumerate(np.bincount(rows.codes[chosen], minlength=CODES).tolist()))


def codes_of(work: FragmentWork) -> Codes:
    """Why each row of a fragment was not fresh when it was planned."""
    if work.reasons is not None:
        return unpack_codes(work.reasons, work.physical_rows)
    return np.full(work.physical_rows, work.reason, np.uint8)


def _count(parts: Iterable[_Part]) -> dict[str, int]:
    counts = dict.fromkeys((*REASONS.values(), FORCED), 0)
    for part in parts:
        for name, count in part.reasons.items():
            counts[name] += count
    return counts


def _why(snapshot: RowSnapshot, calls: Mapping[str, int], taken: int, needed: int) -> str:
    since = f" since version {snapshot.watermark.version}" if snapshot.watermark else ""
    why = f"{taken} of {len(snapshot.fragments)} fragments have rows to compute{since}: "
    why += ", ".join(f"{count} {WORDS[name]}" for name, count in calls.items() if count)
    if taken < needed:
        why += f"; the first {taken} of {needed} fragments are taken"
    return "; ".join([why, *snapshot.notes])


def _why_nothing(snapshot: RowSnapshot, stale: int, total: int) -> str:
    if not total:
        return "the table has no rows"
    if stale:
        return f"none of the {stale} rows that need work was asked for"
    return f"every row of version {snapshot.version} was computed from its present inputs"
