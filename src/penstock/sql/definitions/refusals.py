"""Errors for statements that are refused, and hints at similar names."""

from collections.abc import Iterable
from difflib import get_close_matches

from penstock.errors import InvalidRequest
from penstock.sql.results import Refusal, SqlProblem


def find_near(name: str, names: Iterable[str]) -> list[str]:
    """Similar names."""
    by_lower = {each.lower(): each for each in names}
    return [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)]


def refuse(found: SqlProblem | Refusal) -> InvalidRequest:
    """The error for a statement that can't be a view's: says where, and what to do."""
    reason = getattr(found, "reason", "") or getattr(found, "message", "")
    what, _, remedy = reason.partition("; ")
    where = f" (line {found.line}, column {found.column})" if found.line else ""
    return InvalidRequest(
        f"source_query: {what}{where}", detail=remedy or "correct the SQL of source_query"
    )
