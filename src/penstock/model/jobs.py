"""Jobs: what they are, the states they go through, and pure rules about both.

    QUEUED ──lease──▶ RUNNING ──finish──▶ SUCCEEDED | FAILED | CANCELED
      ▲ └──cancel──▶ CANCELED  │
      └──── lease expired, or failed with a chance ────┘

Every lease is an attempt with a number of its own, and every report names it.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

QUEUED, RUNNING = "QUEUED", "RUNNING"
SUCCEEDED, FAILED, CANCELED = "SUCCEEDED", "FAILED", "CANCELED"
STATES = (QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELED)
ACTIVE = (QUEUED, RUNNING)
FINISHED = (SUCCEEDED, FAILED, CANCELED)

BACKFILL, PREVIEW, REFRESH = "backfill", "preview", "refresh"

FIRST_PAUSE_MILLIS, MAX_PAUSE_MILLIS = 1_000, 60_000
# What of a spec is filled in when it is leased, and so does not make it another request.
LATE = ("watermark", "watermarks")

# What is told of a refresh that has ended, beside the version.
REFRESHED = (
    *("mode", "reason", "rows_inserted", "rows_updated", "rows_deleted"),
    *("function_calls", "rows_failed"),
)

# Of a backfill that has ended: how many rows of the column are what.
BACKFILLED = ("rows_by_state", "stale_by_reason")

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job that is about to be queued; `slot` is what only one job at a time may work on."""

    kind: str
    object: str
    target: str
    slot: str
    spec: dict[str, Any]
    cluster: str
    manifest: str | None = None
    # What else only one job at a time may work on.
    also: tuple[str, ...] = ()

    @property
    def spec_hash(self) -> str:
        """Equal for requests that ask for the same."""
        kept = {key: value for key, value in self.spec.items() if key not in LATE}
        text = msgspec.json.encode([kept, self.cluster, self.manifest], order="sorted")
        return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """One job as it stands; times are milliseconds."""

    id: str
    number: int
    kind: str
    object: str
    target: str
    slot: str
    spec: dict[str, Any]
    cluster: str
    manifest: str | None
    properties: dict[str, str]
    state: str
    attempt: int
    max_attempts: int
    runner: str
    cancel_requested: bool
    progress: dict[str, Value]
    result: dict[str, Any]
    error: str
    retryable: bool
    created_at: int
    started_at: int | None
    finished_at: int | None

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED

    def describe(self) -> dict[str, str]:
        """Everything that is known of the job, as text."""
        version = self.result.get("version")
        known: dict[str, Value] = {
            **self.progress,
            **(_tell_refresh(self.result) if self.kind == REFRESH else {}),
            **(_tell_dicts(self.result, BACKFILLED) if self.kind == BACKFILL else {}),
            "kind": self.kind,
            "target": self.target,
            "cluster": self.cluster,
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "version": version if isinstance(version, int | str) else None,
            "error": self.error or None,
            "runner": self.runner or None,
            "cancel_requested": True if self.cancel_requested else None,
            "created_at": self.created_at,
            "started_at": self.started_at,
            "finished_at": self.finished_at,
        }
        shown = {key: show_value(value) for key, value in known.items() if value is not None}
        return {**self.properties, **shown}


@dataclass(frozen=True, slots=True)
class LogLine:
    at: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended, as its runner tells; QUEUED when it gives the job back unfinished."""

    state: str
    result: dict[str, Any]
    error: str = ""
    retryable: bool = False


def next_state(job: Job, report: Report) -> str:
    """The state of a job after an attempt that ended like this."""
    if report.state in (SUCCEEDED, CANCELED):
        return report.state
    if job.cancel_requested:
        return CANCELED
    if report.state == QUEUED:
        return QUEUED
    return QUEUED if report.retryable and job.attempt < job.max_attempts else FAILED


def retry_pause_millis(attempt: int) -> int:
    """How long a job waits after its attempt failed, twice as long each time."""
    return min(MAX_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << min(attempt - 1, 10))


def _tell_refresh(result: Mapping[str, Any]) -> dict[str, Value]:
    """What the result of a refresh says, as far as it is what it should be."""
    told = {key: result[key] for key in REFRESHED if isinstance(result.get(key), str | int)}
    told |= _tell_dicts(result, ("source_versions", "certificate"))
    if others := _tell_upstream(result.get("upstream")):
        told["upstream"] = msgspec.json.encode(others).decode()
    return told


def _tell_dicts(result: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Value]:
    found = {key: result.get(key) for key in keys}
    return {
        key: msgspec.json.encode(value).decode()
        for key, value in found.items()
        if isinstance(value, dict)
    }


def _tell_upstream(results: Any) -> dict[str, Any]:
    """What was done to views that were refreshed on the way, by their names."""
    found = results.values() if isinstance(results, dict) else ()
    return {
        str(each.get("view")): {"version": each.get("version"), "mode": each.get("mode")}
        for each in found
        if isinstance(each, dict)
    }


def show_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def merge_progress(known: Mapping[str, Value], news: Mapping[str, Value]) -> dict[str, Value]:
    """Progress after a report: what it does not mention stays, null takes away."""
    return {key: value for key, value in {**known, **news}.items() if value is not None}


def list_targets(spec: Mapping[str, Any]) -> list[str]:
    """The ids of the tables that a job changes, its own first: `table_id` of its spec."""
    own = [spec["table_id"]] if "table_id" in spec else []
    return [*own, *(each["table_id"] for each in spec.get("upstream", ()))]


def list_sources(spec: Mapping[str, Any]) -> list[str]:
    """The ids of the tables and views that a job reads besides: `source_ids` of its spec."""
    return [id for id in spec.get("source_ids", ()) if isinstance(id, str)]
