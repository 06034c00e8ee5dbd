"""Jobs, the states they go through, and pure rules about both.

    QUEUED ──lease──▶ RUNNING ──finish──▶ SUCCEEDED | FAILED | CANCELED
      ▲ ├──cancel──▶ CANCELED   │  │
      │ └──pause───▶ PAUSED ◀───┘  │   asked to pause, and its runner did or fell silent
      │ ◀──resume──────┘ └─cancel──│──▶ CANCELED
      └────────────────────────────┘   lease expired, or failed with a chance

Every lease is an attempt with a number of its own, and every report names it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.model.slots import Slot

QUEUED, RUNNING, PAUSED = "QUEUED", "RUNNING", "PAUSED"
SUCCEEDED, FAILED, CANCELED = "SUCCEEDED", "FAILED", "CANCELED"
STATES = (QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED, CANCELED)
ACTIVE = (QUEUED, RUNNING, PAUSED)
FINISHED = (SUCCEEDED, FAILED, CANCELED)
# Events beside the states: a runner fell silent, so the job waits again; an attempt began another
# part of its work.
EXPIRED, PHASE_BEGUN = "LEASE_EXPIRED", "PHASE"
# Progress that is only true while an attempt runs: what it is at, how fast rows are done (of a
# finished job: were done), and how long the rest takes at that rate.
PHASE, RATE, LEFT = "phase", "rows_per_second", "seconds_left"

# What to do about a job that no runner takes.
START_RUNNER = "start a runner with `penstock runner`"
FIRST_PAUSE_MILLIS, MAX_PAUSE_MILLIS = 1_000, 60_000
# Fields of a spec that are filled in at the lease, and so do not make it another request.
LATE = ("watermark", "watermarks")

Value = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to queue; only one job at a time may work on its `slot`."""

    kind: str
    object: str
    target: str
    slot: Slot
    spec: msgspec.Struct
    cluster: str
    manifest: str | None = None
    # Further slots that only one job at a time may work on.
    also: tuple[Slot, ...] = ()

    @property
    def spec_hash(self) -> str:
        """A hash that is equal for equal requests."""
        asked: dict[str, Any] = msgspec.to_builtins(self.spec)
        kept = {key: value for key, value in asked.items() if key not in LATE}
        text = msgspec.json.encode([kept, self.cluster, self.manifest], order="sorted")
        return hashlib.sha256(text).hexdigest()


@dataclass(frozen=True, slots=True)
class Job:
    """One job; times are milliseconds."""

    id: str
    number: int
    kind: str
    object: str
    target: str
    slot: str
    # As it is stored; `jobs.specs` decodes it.
    spec: msgspec.Raw
    cluster: str
    manifest: str | None
    properties: dict[str, str]
    state: str
    attempt: int
    max_attempts: int
    runner: str
    cancel_requested: bool
    pause_requested: bool
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


@dataclass(frozen=True, slots=True)
class LogLine:
    at: int
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """How an attempt ended, as its runner reports; QUEUED or PAUSED when it gives the job back."""

    state: str
    result: dict[str, Any]
    error: str = ""
    retryable: bool = False

    @property
    def is_given_back(self) -> bool:
        """Whether the job is unfinished, and nothing went wrong."""
        return self.state in (QUEUED, PAUSED)


def next_state(job: Job, report: Report) -> str:
    """The state of a job after an attempt that ended like this."""
    if report.state in (SUCCEEDED, CANCELED):
        return report.state
    if job.cancel_requested:
        return CANCELED
    has_chance = report.retryable and job.attempt < job.max_attempts
    if not (report.is_given_back or has_chance):
        return FAILED
    # Whoever resumed the job while its runner was still pausing wants it to go on.
    return PAUSED if job.pause_requested else QUEUED


def retry_pause_millis(attempt: int) -> int:
    """How long a job waits after a failed attempt, doubling each time."""
    return min(MAX_PAUSE_MILLIS, FIRST_PAUSE_MILLIS << min(attempt - 1, 10))


def show_value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def show_progress(job: Job) -> dict[str, Value]:
    """How far a job is, without what is not true any more."""
    if job.state == RUNNING:
        return job.progress
    gone = (PHASE, LEFT) if job.is_finished else (PHASE, LEFT, RATE)
    return {key: value for key, value in job.progress.items() if key not in gone}


def merge_progress(known: Mapping[str, Value], news: Mapping[str, Value]) -> dict[str, Value]:
    """Progress after a report: unmentioned fields stay, null removes."""
    return {key: value for key, value in {**known, **news}.items() if value is not None}
