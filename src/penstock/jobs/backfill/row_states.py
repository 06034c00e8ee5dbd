"""The state of each row of a function's column: fresh, stale, unfilled or failed, and why.

Every row that is alive has one code, so the counts of states add up to the rows. What is known of a
row is read elsewhere (`freshness`); here it is decided on, for plans, runs and descriptions alike.
"""

import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.jobs.backfill.plan import RowCounts
from penstock.lance.diff.masks import Mask

Codes = np.ndarray[Any, np.dtype[np.uint8]]

UNKNOWN, FRESH, NEVER_FILLED, INPUTS_CHANGED, FUNCTION_CHANGED, FOREIGN_VALUE, FAILED = range(7)
CODES = 7
# Why a row that is not fresh needs a call.
REASONS = {
    NEVER_FILLED: "never_filled",
    INPUTS_CHANGED: "inputs_changed",
    FUNCTION_CHANGED: "function_changed",
    FOREIGN_VALUE: "foreign_value",
    FAILED: "failed",
}
# A stale row has a value, which is not the one that the function would give now.
STALE = (INPUTS_CHANGED, FUNCTION_CHANGED, FOREIGN_VALUE)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Some rows compared with those of one earlier version, as a code or a truth for each."""

    same_function: bool
    # What they were there, for the function of then; UNKNOWN: they were not there.
    were: Codes
    same_values: Mask
    same_inputs: Mask


def judge(seen: Comparison) -> Codes:
    """What one earlier version says of each row; UNKNOWN where it says nothing.

    A value that is the same as then was made by what made it then. A row that failed has none, and
    stays failed until it gets one.
    """
    were = seen.were
    if seen.same_function:
        # What had other inputs then has been stale ever since.
        now = np.where((were == FRESH) & ~seen.same_inputs, INPUTS_CHANGED, were)
    else:
        is_made = (were == FRESH) | (were == INPUTS_CHANGED)
        now = np.where(is_made, FUNCTION_CHANGED, were)
    now = np.where(seen.same_values, now, FOREIGN_VALUE)
    return np.where(were == UNKNOWN, UNKNOWN, now).astype(np.uint8)


def join(older: Codes, newer: Codes) -> Codes:
    """What two versions say: one that knows a row as fresh is right, and so is one that knows its
    value where the other does not, as after a restore; else the newer is."""
    is_known = (newer != UNKNOWN) & ((newer != FOREIGN_VALUE) | (older == UNKNOWN))
    return np.where((older == FRESH) | ~is_known, older, newer).astype(np.uint8)


def settle(codes: Codes, is_null: Mask) -> Codes:
    """Decide what no earlier version knows, by the value that stands there."""
    guess = np.where(is_null, NEVER_FILLED, FOREIGN_VALUE)
    return np.where(codes == UNKNOWN, guess, codes).astype(np.uint8)


def to_counts(rows: int, by_code: Mapping[int, int]) -> RowCounts:
    """The states of so many rows, of which those that are not fresh are given by their codes."""
    stale = {REASONS[code]: by_code.get(code, 0) for code in STALE}
    return RowCounts(
        fresh=rows - sum(by_code.get(code, 0) for code in REASONS),
        stale=sum(stale.values()),
        unfilled=by_code.get(NEVER_FILLED, 0),
        failed=by_code.get(FAILED, 0),
        stale_by_reason=stale,
    )


def pack_codes(codes: Codes) -> bytes:
    """Codes in a short form; one for each physical row of a fragment."""
    return zlib.compress(codes.tobytes(), 1)


def unpack_codes(packed: bytes, length: int) -> Codes:
    """The codes of so many rows that `pack_codes` was given."""
    found = np.frombuffer(zlib.decompress(packed), np.uint8)
    if len(found) != length or (len(found) and found.max() >= CODES):
        raise ValueError(f"{len(found)} codes are not those of {length} rows")
    return found.copy()


def mark_left(left: Mask, told: Codes | None, failed: Iterable[int] = ()) -> Codes:
    """The codes of a file's rows: fresh, as they were when they were left out, or failed."""
    # What nothing is told of has no value, as far as is known.
    why = NEVER_FILLED if told is None else np.where(told > FRESH, told, NEVER_FILLED)
    codes = np.where(left, why, FRESH).astype(np.uint8)
    codes[list(failed)] = FAILED
    return codes
