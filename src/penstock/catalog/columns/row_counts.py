"""The rows of bound columns counted by their states, by the plan that a backfill would have."""

from collections.abc import Mapping
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import backfills
from penstock.catalog.columns.backfills import Backfill
from penstock.catalog.columns.watermarks import show_states
from penstock.catalog.jobs.due import PASSING
from penstock.errors import PenstockError
from penstock.model.tables import Table

COUNTED = ("rows_by_state", "stale_by_reason")


async def count_rows(
    catalog: Catalog, table: Table, branch: str, told: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """What is told of bound columns, with the rows of all counted; reads as much as a plan does."""
    rows = await catalog.database.fetch(
        "SELECT name, binding FROM columns WHERE table_id = $1 AND branch = $2", table.id, branch
    )
    groups = {row[0]: row[1] for row in rows}
    # The columns of one function are filled together, so their rows are in the same state.
    counted: dict[str, dict[str, Any]] = {}
    for name, column in told.items():
        group = groups.get(name, name)
        if column["rows_by_state"] is None and group not in counted:
            counted[group] = await _count(catalog, table, branch, name)
    return {name: column | counted.get(groups.get(name, name), {}) for name, column in told.items()}


async def _count(catalog: Catalog, table: Table, branch: str, name: str) -> dict[str, Any]:
    try:
        plan = await backfills.explain_backfill(catalog, table, Backfill(name, branch, {}))
    except PASSING:
        raise
    except PenstockError:
        # Why the column cannot be filled is told to whoever asks for that.
        return show_states(None)
    return {"stale": plan["rows_by_state"]["stale"] > 0, **{key: plan[key] for key in COUNTED}}
