"""What came of comparing a view with its query computed anew."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.sdk.pictures.bars import badge, bar
from penstock.sdk.pictures.markup import BAD, GOOD, WARN, element, join, table


@dataclass(frozen=True)
class Certificate:
    """What came of comparing a view with its query computed anew."""

    view: str
    is_equal: bool
    rows: int
    rows_expected: int
    rows_missing: int
    rows_extra: int
    # All that was told, such as `digest`, `columns` and `source_versions`.
    told: dict[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.is_equal

    def __str__(self) -> str:
        if self.is_equal:
            return f"{self.view} is its query: {self.rows:,} rows"
        return (
            f"{self.view} is NOT its query: {self.rows_missing:,} rows are missing, "
            f"{self.rows_extra:,} are too many"
        )

    def _repr_html_(self) -> str:
        verdict = badge("equal", GOOD) if self.is_equal else badge("different", BAD)
        parts = [
            ("rows as expected", self.rows - self.rows_extra, GOOD),
            ("missing", self.rows_missing, BAD),
            ("too many", self.rows_extra, WARN),
        ]
        rows = [
            ("rows", f"{self.rows:,} of {self.rows_expected:,} expected"),
            ("digest", self.told.get("digest", "")),
        ]
        head = element("div", join([element("strong", f"Certificate of {self.view} "), verdict]))
        return join([head, bar(parts, "rows compared"), table("", rows)])


def read_certificate(view: str, told: Mapping[str, Any]) -> Certificate:
    keys = ("rows", "rows_expected", "rows_missing", "rows_extra")
    counts = {key: int(told.get(key) or 0) for key in keys}
    return Certificate(view, bool(told["is_equal"]), **counts, told=dict(told))
