"""What a column would be for a few rows."""

from collections.abc import Mapping
from typing import Any

from penstock.sdk.pictures.markup import table


class Preview:
    """Values that a function gave, and what it failed on; nothing of it was written."""

    def __init__(self, column: str, told: Mapping[str, Any]) -> None:
        self.column = column
        # By row: `row_id`, and the columns that the function fills. Long values are shortened.
        self.rows: list[dict[str, Any]] = [
            {"row_id": each["row_id"], **each["values"]} for each in told["values"]
        ]
        self.errors: list[dict[str, Any]] = told["errors"]
        self.seconds: float = told["seconds"]
        self.rows_per_second: float | None = told["rows_per_second"]
        self.printed: list[str] = told["printed"]

    @property
    def values(self) -> list[Any]:
        """The column's values, in the order of the rows."""
        return [row.get(self.column) for row in self.rows]

    def __repr__(self) -> str:
        shown = [f"  row {row['row_id']}: {row.get(self.column)!r}" for row in self.rows]
        failed = [
            f"  row {each.get('row_id')} failed: {each.get('exception')}: {each.get('message')}"
            for each in self.errors
        ]
        head = f"preview of {self.column}: {len(self.rows)} rows, {len(self.errors)} failed"
        return "\n".join([head, *shown, *failed])

    def _repr_html_(self) -> str:
        failed = {each.get("row_id"): each.get("message") for each in self.errors}
        rows = [(r["row_id"], r.get(self.column), failed.get(r["row_id"], "")) for r in self.rows]
        return table(f"preview of {self.column}", rows, ("row", self.column, "error"))
