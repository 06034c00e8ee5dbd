"""Jobs: what they are doing, how they ended, and waiting for that."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.errors import JobCanceled, JobFailed
from penstock.model.jobs import CANCELED, FINISHED, PAUSED, SUCCEEDED
from penstock.retries import Backoff
from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.jobs.progress import Display, open_display
from penstock.sdk.show import html_table, show_time, to_time

FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.05, 0.5


@dataclass(frozen=True)
class RowError:
    """A row that a function failed on."""

    row_id: int
    column: str
    function: str
    function_version: str
    error_type: str
    message: str
    inputs: str
    traceback: str
    tries: int
    job_id: str


class Job:
    """A backfill, a refresh or a preview that was requested."""

    def __init__(self, wire: Wire, id: str, not_previewed: str = "") -> None:
        self._wire = wire
        self.id = id
        # Of a view's alteration: why its new functions were not tried on some rows before.
        self.not_previewed = not_previewed

    @property
    def status(self) -> str:
        """QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED or CANCELED, as it is now."""
        return str(self.describe()["status"])

    @property
    def done(self) -> bool:
        return self.status in FINISHED

    @property
    def properties(self) -> dict[str, str]:
        """Everything that is known of it, as text: `kind`, `target`, `rows_done`, `error` …"""
        found: dict[str, str] = self.describe()["properties"]
        return found

    @property
    def kind(self) -> str:
        return self.properties["kind"]

    @property
    def target(self) -> str:
        return self.properties["target"]

    @property
    def error(self) -> str:
        """Why it failed; empty when it did not."""
        return self.properties.get("error", "")

    @property
    def rows_done(self) -> int:
        return self._number("rows_done")

    @property
    def rows_failed(self) -> int:
        return self._number("rows_failed")

    @property
    def rows_left(self) -> int:
        """Rows that a backfill left for another one, those aside that failed."""
        return self._number("rows_left")

    @property
    def rows_by_state(self) -> dict[str, int] | None:
        """All rows of the column after a backfill, as `fresh`, `stale`, `unfilled` or `failed`."""
        found = self.properties.get("rows_by_state")
        return None if found is None else msgspec.json.decode(found, type=dict[str, int])

    @property
    def function_calls(self) -> int:
        """How many rows were given to the function, or partitions to a udtf."""
        return self._number("function_calls")

    @property
    def version(self) -> int | None:
        """The version that it committed or found."""
        found = self.properties.get("version")
        return None if found is None else int(found)

    @property
    def result(self) -> dict[str, Any]:
        """What it reported at its end; empty before that."""
        found = self._wire.read("/v1/jobs/describe", {"job_id": self.id})
        result: dict[str, Any] = found.get("result") or {}
        return result

    def wait(self, timeout: float | None = None, progress: bool | None = None) -> "Job":
        """Wait until it has succeeded, with a bar on a terminal or in a notebook.

        Raises JobFailed or JobCanceled when it ended otherwise, and TimeoutError when `timeout`
        seconds are over; it goes on then. `progress` switches the bar on or off. A job that is
        paused is waited for like any other.
        """
        display = open_display(progress)
        try:
            found = self._follow(timeout, display)
        finally:
            display.close()
        status, told = found["status"], found["properties"]
        if status == SUCCEEDED:
            return self
        name = f"{told.get('kind', 'job')} of {told.get('target', '?')} (job {self.id})"
        if status == CANCELED:
            raise JobCanceled(f"{name} was canceled")
        raise JobFailed(
            f"{name} failed: {told.get('error') or 'no reason was told'}",
            detail="job.logs() and job.errors() tell more",
        )

    def cancel(self) -> "Job":
        """Ask for its end; a job that runs ends when its runner hears of it."""
        self._wire.change("/v1/jobs/cancel", {"job_id": self.id})
        return self

    def pause(self) -> "Job":
        """Have it wait until it is resumed; a job that runs pauses when its batches have ended."""
        self._wire.change("/v1/jobs/pause", {"job_id": self.id})
        return self

    def resume(self) -> "Job":
        """Have it go on from what it had finished when it was paused."""
        self._wire.change("/v1/jobs/resume", {"job_id": self.id})
        return self

    def errors(self, limit: int = 100) -> list[RowError]:
        """Rows that the function failed on in this job, the newest first."""
        spec = self._wire.read("/v1/jobs/describe", {"job_id": self.id})["spec"]
        return list_errors(self._wire, tuple(spec["table"]), job_id=self.id, limit=limit)

    def logs(self) -> list[str]:
        """The lines of its log, with what the function printed."""
        return list(self._list_logs())

    def __repr__(self) -> str:
        found = self.describe()
        told = found["properties"]
        rows = _show_rows(told)
        why = told.get("error") or told.get("waiting")
        tail = f": {why}" if why else rows and f", {rows}"
        return (
            f"<Job {self.id}, {told.get('kind')} of {told.get('target')}, {found['status']}{tail}>"
        )

    def _repr_html_(self) -> str:
        found = self.describe()
        told = found["properties"]
        rows = {"status": found["status"], **{k: told[k] for k in SHOWN if k in told}}
        for key in ("created_at", "finished_at"):
            if key in told:
                rows[key] = show_time(to_time(told[key]))
        return html_table(f"Job {self.id}", list(rows.items()))

    def describe(self) -> dict[str, Any]:
        """Its `status` and `properties`, as the server tells them."""
        path = path_of("transaction", (self.id,), "describe")
        found: dict[str, Any] = self._wire.read(path)
        return found

    def _number(self, key: str) -> int:
        return int(float(self.properties.get(key, "0")))

    def _follow(self, timeout: float | None, display: Display) -> dict[str, Any]:
        deadline = None if timeout is None else time.monotonic() + timeout
        pauses = Backoff(FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS, 1.3)
        while True:
            found = self.describe()
            display.show(found["status"], found["properties"])
            if found["status"] in FINISHED:
                return found
            if deadline is not None and time.monotonic() >= deadline:
                waiting = found["properties"].get("waiting", "")
                remedy = "; resume it" if found["status"] == PAUSED else waiting and f": {waiting}"
                raise TimeoutError(
                    f"job {self.id} is {found['status']} after {timeout:g} seconds{remedy}"
                )
            self._wire.pause(pauses.take())

    def _list_logs(self) -> Iterator[str]:
        path = path_of("jobs", (self.id,), "logs")
        for lines in self._wire.pages(
            lambda token: self._wire.get(path, page_token=token), "lines"
        ):
            for line in lines:
                yield f"{show_time(to_time(line['at']))} {line['level']:<7} {line['text']}"


SHOWN = (
    *("kind", "target", "mode", "reason", "rows_total", "rows_done", "rows_failed"),
    *("rows_left", "rows_by_state"),
    *(
        "rows_inserted",
        "rows_updated",
        "rows_deleted",
        "function_calls",
        "version",
        "error",
        "waiting",
    ),
)


def list_errors(
    wire: Wire,
    table: tuple[str, ...],
    *,
    column: str | None = None,
    job_id: str | None = None,
    branch: str | None = None,
    limit: int = 100,
) -> list[RowError]:
    """Rows of a table that functions failed on."""
    body = {"column": column, "job_id": job_id, "branch": branch, "limit": limit}
    records = wire.read(path_of("table", table, "errors"), body)["records"]
    return [
        RowError(
            row_id=each["row_id"],
            column=each["column"],
            function=each["function"],
            function_version=each["function_version"],
            error_type=each["error_type"],
            message=each["error_message"],
            inputs=each["inputs"],
            traceback=each["traceback"],
            tries=each["tries"],
            job_id=each["job_id"],
        )
        for each in records
    ]


def _show_rows(told: dict[str, str]) -> str:
    if "rows_total" not in told:
        return ""
    return f"{int(told.get('rows_done', '0')):,} of {int(told['rows_total']):,} rows"
