"""What holds for every plan of a refresh."""

from typing import Any

# Numbers of a plan, and what a job calls them when it has ended.
PLANNED = {
    "rows_to_insert": "rows_inserted",
    "rows_to_update": "rows_updated",
    "rows_to_delete": "rows_deleted",
    "function_calls": "function_calls",
}


def check_told(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan, in which each number is there, or the reason why it is unknown."""
    unknown = {name for name in PLANNED if plan[name] is None}
    assert plan["unknown"].keys() == unknown
    assert all(plan["unknown"].values())
    return plan
