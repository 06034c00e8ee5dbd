"""What dialect care refuses, as errors of ours, and hints of what may have been meant."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

from penstock.errors import InvalidRequest

if TYPE_CHECKING:
    from penstock.sql.results import Problem, Refusal


def find_near(name: str, names: Iterable[str]) -> list[str]:
    """Names that may have been meant."""
    by_lower = {each.lower(): each for each in names}
    return [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]


def refuse(found: "Problem | Refusal") -> InvalidRequest:
    """The error of a statement that can't be a view's: it says where, and what to do."""
    reason = getattr(found, "reason", "") or getattr(found, "message", "")
    what, _, remedy = reason.partition("; ")
    where = f" (line {found.line}, column {found.column})" if found.line else ""
    return InvalidRequest(
        f"source_query: {what}{where}", detail=remedy or "correct the SQL of source_query"
    )
