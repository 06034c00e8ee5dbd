"""Jobs: what they are doing, how they ended, and waiting for that."""

import time
from collections.abc import Iterator
from typing import Any

from penstock.errors import (
    InvalidRequest,
    JobCanceled,
    JobFailed,
    TransactionNotFound,
)
from penstock.model.jobs import CANCELED, FINISHED, PAUSED, SUCCEEDED
from penstock.retries import Backoff
from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.jobs.facts import Facts, show_clock, show_property
from penstock.sdk.jobs.progress import Display, open_display
from penstock.sdk.jobs.row_errors import RowError, list_errors
from penstock.sdk.pictures.markup import table
from penstock.sdk.show import show_time, to_time

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 0.5
# How many ids are named when several begin alike.
ALIKE = 5


class Job(Facts):
    """A backfill, a refresh or a preview that was requested.

    Its attributes are as it was when it was asked last: when it was made, by `wait`, `done` and
    `reload`, and by `cancel`, `pause` and `resume`.
    """

    def __init__(self, wire: Wire, id: str, not_previewed: str = "") -> None:
        self._wire = wire
        self.id = id
        # Of a view's alteration: why its new functions were not tried on some rows before.
        self.not_previewed = not_previewed

    def reload(self) -> "Job":
        """Ask how it is now."""
        found = self._wire.read(path_of("transaction", (self.id,), "describe"))
        self._take(found["status"], found["properties"])
        return self

    def done(self) -> bool:
        """Ask whether it has ended, in whatever way."""
        return self.reload().status in FINISHED

    def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> "Job":
        """Wait until it has succeeded, with a bar on a terminal or in a notebook.

        Raises JobFailed or JobCanceled when it ended otherwise, and TimeoutError when `timeout`
        seconds are over; it goes on then. `progress` switches the bar on or off. A job that is
        paused is waited for like any other.
        """
        display = open_display(progress)
        try:
            self._follow(timeout, display)
        finally:
            display.close()
        if self.status == SUCCEEDED:
            return self
        name = f"{self.kind or 'job'} of {self.target or '?'} (job {self.id})"
        if self.status == CANCELED:
            raise JobCanceled(f"{name} was canceled")
        error = JobFailed(
            f"{name} failed: {self.error or 'no reason was told'}",
            detail="job.logs() and job.errors() tell more",
        )
        error.add_note(error.detail)
        raise error

    def cancel(self) -> "Job":
        """Ask for its end; a job that runs ends when its runner hears of it."""
        self._wire.change("/v1/jobs/cancel", {"job_id": self.id})
        return self.reload()

    def pause(self) -> "Job":
        """Have it wait until it is resumed; a job that runs pauses when its batches have ended."""
        self._wire.change("/v1/jobs/pause", {"job_id": self.id})
        return self.reload()

    def resume(self) -> "Job":
        """Have it go on from what it had finished when it was paused."""
        self._wire.change("/v1/jobs/resume", {"job_id": self.id})
        return self.reload()

    def errors(self, *, limit: int | None = None) -> list[RowError]:
        """Rows that the function failed on in this job, the newest first: all, or so many."""
        table = tuple(self.describe()["spec"]["table"])
        return list_errors(self._wire, table, job_id=self.id, limit=limit)

    def logs(self) -> list[str]:
        """The lines of its log, with what the function printed."""
        return list(self._list_logs())

    def describe(self) -> dict[str, Any]:
        """Its request, state and result, as the server tells them."""
        found: dict[str, Any] = self._wire.read("/v1/jobs/describe", {"job_id": self.id})
        return found

    def __repr__(self) -> str:
        tail = self.error or self.waiting or self.summary
        shown = f"{self.status}: {tail}" if tail else self.status
        return f"<Job {self.id}, {self.kind} of {self.target}, {shown}>"

    def _repr_html_(self) -> str:
        rows = [("status", self.status), *list_facts(self)]
        return table(f"Job {self.id}", rows)

    def _follow(self, timeout: float | None, display: Display) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        pauses = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, 1.3)
        while True:
            self.reload()
            display.show(self)
            if self.status in FINISHED:
                return
            if deadline is not None and time.monotonic() >= deadline:
                remedy = f": {self.waiting}" if self.waiting else ""
                remedy = "; resume it" if self.status == PAUSED else remedy
                raise TimeoutError(
                    f"job {self.id} is {self.status} after {timeout:g} seconds{remedy}"
                )
            self._wire.pause(pauses.take())

    def _list_logs(self) -> Iterator[str]:
        path = path_of("jobs", (self.id,), "logs")
        for lines in self._wire.pages(
            lambda token: self._wire.get(path, page_token=token), "lines"
        ):
            for line in lines:
                yield f"{show_time(to_time(line['at']))} {line['level']:<7} {line['text']}"


# What is shown of a job, as far as it is told.
SHOWN = (
    *("kind", "target", "cluster", "phase", "mode", "reason", "rows_total", "rows_done"),
    *("rows_failed", "rows_left", "rows_by_state", "rows_inserted", "rows_updated"),
    *("rows_deleted", "function_calls", "calls_saved", "rows_per_second", "version", "attempt"),
    *("runner", "error", "waiting"),
)


def list_facts(job: Job) -> list[tuple[str, str]]:
    """What people read of a job, with its times."""
    told = job.properties
    found = [(name, show_property(name, told[name])) for name in SHOWN if told.get(name)]
    found.append(("requested", show_time(job.created_at)))
    if job.started_at is not None and job.seconds is not None:
        found.append(("started", show_time(job.started_at)))
        took = "took" if job.finished_at else "runs for"
        found.append((took, show_clock(job.seconds)))
    if job.seconds_left is not None:
        found.append(("left", f"about {show_clock(job.seconds_left)}"))
    if job.finished_at is not None:
        found.append(("finished", show_time(job.finished_at)))
    return found


def follow_job(
    wire: Wire, id: str, *, wait: bool, progress: bool | None, not_previewed: str = ""
) -> Job:
    """The job that was requested, when it has ended or as it is now."""
    job = Job(wire, id, not_previewed)
    return job.wait(progress=progress) if wait else job.reload()


def find_job(wire: Wire, id: str) -> Job:
    """The job of this id, or whose id begins so."""
    try:
        return Job(wire, id).reload()
    except TransactionNotFound:
        found = list_jobs(wire, {"job_id": id}, ALIKE + 1) if id else []
        if not found:
            raise
    if len(found) > 1:
        ids = ", ".join(each.id for each in found[:ALIKE])
        raise InvalidRequest(
            f"the ids of several jobs begin with {id}: {ids}{', …' if len(found) > ALIKE else ''}",
            detail="give more of the id",
        )
    return found[0]


def list_jobs(wire: Wire, wanted: dict[str, Any], limit: int | None) -> list[Job]:
    """Jobs, the newest first."""
    body = {**wanted, "properties": True, "limit": limit}
    pages = wire.pages(
        lambda token: wire.read("/v1/jobs/list", {**body, "page_token": token}), "jobs"
    )
    found: list[Job] = []
    for page in pages:
        for told in page:
            job = Job(wire, told["job_id"])
            job._take(told["status"], told["properties"])
            found.append(job)
        if limit is not None and len(found) >= limit:
            break
    return found[:limit]
