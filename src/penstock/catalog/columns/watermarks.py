"""The watermarks of a column: what its last backfills covered, newest first.

Each names a version of the table, the function that filled it, and how many rows are in each state.
"""

from typing import Any

import msgspec

from penstock.jobs.backfill.plan import RowCounts, show_counts
from penstock.model.functions import Function

# Older ones help when the newest cannot be read any more.
MAX_WATERMARKS = 3


def add(known: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Add a watermark; keeps the last of each function, whose values may still be there."""
    found = [new, *(each for each in known if each != new)]
    seen = set[str | None]()
    last = []
    for each in found:
        if each.get("function") not in seen:
            seen.add(each.get("function"))
            last.append(each)
    kept = [*last, *(each for each in found if each not in last)][:MAX_WATERMARKS]
    return [each for each in found if each in kept]


def find_covered(watermarks: str | None, branch: str) -> int | None:
    """The last version of a branch that a backfill covers; None without one."""
    last = _find_last(watermarks, branch)
    return None if last is None else int(last["version"])


def find_counts(
    watermarks: str | None, branch: str, head: int | None, function: Function | None
) -> RowCounts | None:
    """The row states of the newest version, if the last backfill made it; else None."""
    last = _find_last(watermarks, branch)
    wanted = (head, None if function is None else function.identity)
    if last is None or (last["version"], last.get("function")) != wanted:
        return None
    return _read_counts(last)


def is_incomplete(watermarks: str | None, branch: str) -> bool:
    """Whether the last backfill left rows, other than failed ones, that another would fill."""
    last = _find_last(watermarks, branch)
    counts = None if last is None else _read_counts(last)
    return counts is not None and counts.stale + counts.unfilled > 0


def show_states(counts: RowCounts | None) -> dict[str, Any]:
    """The row states of a column for a description; null where unknown."""
    return {"stale": None if counts is None else counts.stale > 0, **show_counts(counts)}


def _find_last(watermarks: str | None, branch: str) -> dict[str, Any] | None:
    known: list[dict[str, Any]] = [] if watermarks is None else msgspec.json.decode(watermarks)
    # Watermarks of SQL columns name no branch: the column itself is on one.
    return next((each for each in known if each.get("branch", branch) == branch), None)


def _read_counts(watermark: dict[str, Any]) -> RowCounts | None:
    try:
        return msgspec.convert(watermark.get("counts"), RowCounts | None)
    except msgspec.ValidationError:
        return None
