"""The plan of a backfill by a function: which rows are computed, and why.

Every row that is alive is fresh, or has a reason not to be. What is known of the rows is read
elsewhere (`datasets.changes`); here it is decided on.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.pipeline.plan.backfill import (
    BackfillOptions,
    Fill,
    FragmentState,
    FragmentWork,
    UpToDate,
    Watermark,
    fragment_key,
    is_file_of,
)
from penstock.pipeline.plan.masks import pack, unpack

if TYPE_CHECKING:
    import numpy as np

    from penstock.pipeline.plan.masks import Mask

    Codes = np.ndarray[Any, np.dtype[np.uint8]]

UNKNOWN, FRESH, NEVER_FILLED, INPUTS_CHANGED, FUNCTION_CHANGED, FOREIGN_VALUE = range(6)
REASONS = {
    NEVER_FILLED: "never_filled",
    INPUTS_CHANGED: "inputs_changed",
    FUNCTION_CHANGED: "function_changed",
    FOREIGN_VALUE: "foreign_value",
}
FORCED = "forced"
WORDS = {
    "never_filled": "never filled",
    "inputs_changed": "with other inputs",
    "function_changed": "filled by another version of the function",
    "foreign_value": "with values that no backfill wrote",
    FORCED: "asked for by force",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """What one watermark knows of some rows, as a truth for each."""

    same_function: bool
    # In that version, and fresh there.
    filled: "Mask"
    same_values: "Mask"
    same_inputs: "Mask"


@dataclass(frozen=True, slots=True)
class FragmentRows:
    """A fragment and its rows: one code for each physical row, or one that all have."""

    state: FragmentState
    codes: "Codes | int"
    # None: nothing is deleted.
    live: "Mask | None" = None
    # Which rows this backfill may compute; None: all.
    selected: "Mask | None" = None


@dataclass(frozen=True, slots=True)
class RowSnapshot:
    """One version of a table, as a backfill by a function sees it."""

    version: int
    fragments: tuple[FragmentRows, ...]
    watermark: Watermark | None = None
    # Why less is known than might be.
    notes: tuple[str, ...] = ()


def judge(seen: Seen) -> "Codes":
    """What one watermark says of each row; UNKNOWN where it says nothing."""
    import numpy as np

    if not seen.same_function:
        return np.where(seen.filled, FUNCTION_CHANGED, UNKNOWN).astype(np.uint8)
    changed = np.where(seen.same_inputs, FRESH, INPUTS_CHANGED)
    found = np.where(seen.same_values, changed, FOREIGN_VALUE)
    return np.where(seen.filled, found, UNKNOWN).astype(np.uint8)


def join(older: "Codes", newer: "Codes") -> "Codes":
    """What two watermarks say: one that knows a row as fresh is right, else the newer is."""
    import numpy as np

    return np.where((older == FRESH) | (newer == UNKNOWN), older, newer).astype(np.uint8)


def settle(codes: "Codes", is_null: "Mask", was_there: "Mask") -> "Codes":
    """Decide what no watermark knows, by the value that stands there.

    A row that a watermark's version had, and did not count as filled, was left by a backfill.
    """
    import numpy as np

    guess = np.where(is_null, NEVER_FILLED, np.where(was_there, INPUTS_CHANGED, FOREIGN_VALUE))
    return np.where(codes == UNKNOWN, guess, codes).astype(np.uint8)


def plan_rows(snapshot: RowSnapshot, options: BackfillOptions) -> UpToDate | Fill:
    """Decide what a backfill by a function computes."""
    parts = [part for rows in snapshot.fragments if (part := _divide(rows, options)) is not None]
    # A fragment without a row to compute keeps its file.
    needed = [part for part in parts if part.rows]
    taken = needed[: options.num_frags]
    total = sum(rows.state.rows for rows in snapshot.fragments)
    stale = sum(part.stale for part in parts)
    left = stale - sum(part.stale - part.left for part in taken)
    if not taken:
        return UpToDate(
            _why_nothing(snapshot, stale, total), rows_left=left, calls_by_reason=_count([])
        )
    calls = _count(taken)
    computed = sum(part.rows for part in taken)
    return Fill(
        "full" if computed == total else "incremental",
        _why(snapshot, calls, len(taken), len(needed)),
        tuple(part.work for part in taken),
        rows_left=left,
        calls_by_reason=calls,
    )


def stale_rows(rows: FragmentRows) -> "Mask | None":
    """The rows of a fragment that are alive and not fresh; None when there is none."""
    import numpy as np

    if isinstance(rows.codes, int):
        if rows.codes == FRESH or not rows.state.rows:
            return None
        found = np.ones(rows.state.physical_rows, bool)
    else:
        found = rows.codes > FRESH
    if rows.live is not None:
        found = found & rows.live
    return found if found.any() else None


def covers(made: FragmentWork, wanted: FragmentWork) -> bool:
    """Whether what was computed for a fragment is all that is wanted of it now."""
    import numpy as np

    same = (made.need, made.left, made.dead) == (wanted.need, wanted.left, wanted.dead)
    if same or (made.need is None and made.left is None and made.dead is None):
        return True
    count = made.physical_rows

    def unpacked(packed: bytes | None, *, otherwise: bool) -> "Mask":
        return np.full(count, otherwise) if packed is None else unpack(packed, count)

    live = ~unpacked(wanted.dead, otherwise=False)
    need = live & unpacked(wanted.need, otherwise=True)
    left = live & unpacked(wanted.left, otherwise=False)
    has_value = unpacked(made.need, otherwise=True) & ~unpacked(made.dead, otherwise=False)
    kept_back = unpacked(made.left, otherwise=False)
    # A row that was dead has no value, whatever is wanted of it now.
    revived = live & unpacked(made.dead, otherwise=False)
    return not ((need & ~has_value) | (left & ~kept_back & ~has_value) | revived).any()


@dataclass(frozen=True, slots=True)
class _Part:
    """What a fragment would cost: rows to compute, rows that are not fresh, before and after."""

    work: FragmentWork
    rows: int
    stale: int
    left: int
    reasons: Mapping[str, int]


def _divide(rows: FragmentRows, options: BackfillOptions) -> _Part | None:
    import numpy as np

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
        deletions=state.deletions,
        dead=None if rows.live is None else pack(~rows.live),
    )
    reasons = {FORCED: count} if forced else _reasons(rows.codes, need, count)
    return _Part(work, count, int(stale.sum()), int(left.sum()), reasons)


def _did(state: FragmentState, options: BackfillOptions) -> bool:
    """Whether this job, perhaps an earlier attempt of it, has been through the fragment."""
    files = state.target_files
    return (
        len(files) == 1
        and is_file_of(files[0], options.job)
        and files[0].split("-")[1] == fragment_key(state, options)
    )


def _reasons(codes: "Codes | int", need: "Mask", count: int) -> dict[str, int]:
    import numpy as np

    if isinstance(codes, int):
        return {REASONS[codes]: count}
    counts = np.bincount(codes[need], minlength=6).tolist()
    return {name: counts[code] for code, name in REASONS.items() if counts[code]}


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
