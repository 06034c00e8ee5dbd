"""A column's watermarks as the catalog keeps them: what the last backfills left, the newest first.

Each names a version of the table, the function that filled it, and how many rows are in each state.
"""

from typing import Any

import msgspec

from penstock.jobs.backfill.row_states import RowCounts, show_counts
from penstock.model.functions import Function

# An older one is of use when the newest cannot be read any more.
MAX_WATERMARKS = 3


def add(known: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """The watermarks that are kept: of each function the last first, so that none is forgotten
    whose values are still there because later jobs left them out."""
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
    """The last version of a branch that a backfill accounts for; None when none was there."""
    last = _find_last(watermarks, branch)
    return None if last is None else int(last["version"])


def find_counts(
    watermarks: str | None, branch: str, head: int | None, function: Function | None
) -> RowCounts | None:
    """The states of the newest version's rows, if the last backfill left just that; else None."""
    last = _find_last(watermarks, branch)
    wanted = (head, None if function is None else function.identity)
    if last is None or (last["version"], last.get("function")) != wanted:
        return None
    return _read_counts(last)


def is_incomplete(watermarks: str | None, branch: str) -> bool:
    """Whether the last backfill left rows, beside those that failed, that another would fill."""
    last = _find_last(watermarks, branch)
    counts = None if last is None else _read_counts(last)
    return counts is not None and counts.stale + counts.unfilled > 0


def show_states(counts: RowCounts | None) -> dict[str, Any]:
    """The states of a column's rows as a description tells them; null where they are not known."""
    return {"stale": None if counts is None else counts.stale > 0, **show_counts(counts)}


def _find_last(watermarks: str | None, branch: str) -> dict[str, Any] | None:
    known: list[dict[str, Any]] = [] if watermarks is None else msgspec.json.decode(watermarks)
    # Those of a column by SQL name no branch: they are its own.
    return next((each for each in known if each.get("branch", branch) == branch), None)


def _read_counts(watermark: dict[str, Any]) -> RowCounts | None:
    try:
        return msgspec.convert(watermark.get("counts"), RowCounts | None)
    except msgspec.ValidationError:
        return None
