"""What is known of a job, typed, and how people read it in a line."""

import datetime
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from penstock.model.jobs import FINISHED, QUEUED, SUCCEEDED
from penstock.sdk.show import show_states, to_time


class Facts:
    """A job as it was when it was asked last; None where nothing is told of it."""

    status: str = QUEUED
    kind: str = ""
    # The table and column, or the view, that it works on.
    target: str = ""
    cluster: str = ""
    # What it is at: `planning`, `computing`, `committing` …
    phase: str | None = None
    # `full`, `incremental` or `none`, and why.
    mode: str | None = None
    reason: str | None = None
    rows_total: int | None = None
    rows_done: int = 0
    # Rows that the function failed on and that it left empty, so that it could go on.
    rows_failed: int = 0
    # Rows that a backfill left for another one, those aside that failed.
    rows_left: int = 0
    # All rows of the column after a backfill, as `fresh`, `stale`, `unfilled` or `failed`.
    rows_by_state: dict[str, int] | None = None
    # Of a refresh that has ended.
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    # How many rows were given to the function, or partitions to a udtf, and how many more it would
    # have taken to compute everything.
    function_calls: int = 0
    calls_saved: int | None = None
    rows_per_second: float | None = None
    seconds_left: float | None = None
    # The version that it committed or found.
    version: int | None = None
    attempt: int = 0
    # Why it failed; empty when it did not.
    error: str = ""
    # Why no runner takes it.
    waiting: str = ""
    created_at: datetime.datetime | None = None
    started_at: datetime.datetime | None = None
    finished_at: datetime.datetime | None = None
    # Everything that is known of it, by the names above and some more.
    properties: Mapping[str, Any] = {}

    def _take(self, status: str, properties: Mapping[str, str]) -> None:
        """Take in what the server told."""
        self.status = status
        self.properties = read_properties(properties)
        for name in _FIELDS:
            setattr(self, name, self.properties.get(name, getattr(Facts, name)))

    @property
    def seconds(self) -> float | None:
        """How long it has run, or ran, since it was taken first."""
        if self.started_at is None:
            return None
        end = self.finished_at or datetime.datetime.now(datetime.UTC)
        return (end - self.started_at).total_seconds()

    @property
    def summary(self) -> str:
        """What it did, or has done until now: rows, calls made and saved, failed rows."""
        return ", ".join([*self._count_rows(), *self._count_calls()])

    def _count_rows(self) -> list[str]:
        if self.rows_inserted is not None and self.status in FINISHED:
            changes = {
                "inserted": self.rows_inserted,
                "updated": self.rows_updated or 0,
                "deleted": self.rows_deleted or 0,
            }
            parts = [f"{count:,} {word}" for word, count in changes.items() if count]
            rows = [f"rows: {', '.join(parts)}" if parts else "no rows to change"]
        elif self.rows_total is None:
            rows = []
        elif self.status == SUCCEEDED:
            rows = [count_rows(self.rows_total)]
        else:
            rows = [f"{self.rows_done:,} of {count_rows(self.rows_total)}"]
        if self.rows_failed:
            rows.append(f"{self.rows_failed:,} failed")
        if self.rows_left:
            rows.append(f"{self.rows_left:,} left")
        return rows

    def _count_calls(self) -> list[str]:
        if not self.function_calls and not self.calls_saved:
            return []
        calls = f"{self.function_calls:,} call{'' if self.function_calls == 1 else 's'}"
        saved = f"{self.calls_saved:,} saved" if self.calls_saved else ""
        return [calls, saved] if saved else [calls]


def count_rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def read_properties(told: Mapping[str, str]) -> dict[str, Any]:
    """The properties of a job with their types; what clients have set stays text."""
    return {name: _READERS.get(name, str)(text) for name, text in told.items()}


def show_property(name: str, value: Any) -> str:
    """A property as people read it."""
    if name in ("rows_by_state", "stale_by_reason"):
        return show_states(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value) if name in _PLAIN else f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.1f}"
    if isinstance(value, datetime.datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S UTC")
    return str(value)


def show_clock(seconds: float) -> str:
    """A duration as people read it: 0:42, 12:05, 3:00:10."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _number(text: str) -> int:
    return int(float(text))


def _target(text: str) -> str:
    return text.replace("$", ".")


def _json(text: str) -> Any:
    return msgspec.json.decode(text)


_PLAIN = ("version", "attempt", "max_attempts")
_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(
        (
            *("rows_total", "rows_done", "rows_failed", "rows_left", "rows_inserted"),
            *("rows_updated", "rows_deleted", "fragments_total", "fragments_done"),
            *("function_calls", "calls_saved", *_PLAIN),
        ),
        _number,
    ),
    **dict.fromkeys(("rows_per_second", "seconds_left"), float),
    **dict.fromkeys(("created_at", "started_at", "finished_at"), to_time),
    **dict.fromkeys(("cancel_requested", "pause_requested"), lambda text: text == "true"),
    **dict.fromkeys(
        (
            *("rows_by_state", "stale_by_reason", "source_versions", "certificate"),
            "upstream",
        ),
        _json,
    ),
    "target": _target,
    "phase": _target,
}
_FIELDS = tuple(name for name in Facts.__annotations__ if name not in ("status", "properties"))
