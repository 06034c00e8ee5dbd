"""Job of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited
from penstock.sdk.jobs.job import Job

if TYPE_CHECKING:
    import datetime
    from collections.abc import Mapping

    from penstock.sdk.jobs.row_errors import RowError


class AsyncJob(Awaited[Job], of=Job):
    """A backfill, a refresh or a preview that was requested.

    Its attributes are as it was when it was asked last: when it was made, by `wait`, `done` and
    `reload`, and by `cancel`, `pause` and `resume`."""

    async def reload(self) -> AsyncJob:
        """Ask how it is now."""
        found: AsyncJob = await self._run(self._wrapped.reload)
        return found

    async def done(self) -> bool:
        """Ask whether it has ended, in whatever way."""
        found: bool = await self._run(self._wrapped.done)
        return found

    async def wait(self, timeout: float | None = None, *, progress: bool | None = None) -> AsyncJob:
        """Wait until it has succeeded, with a bar on a terminal or in a notebook.

        Raises JobFailed or JobCanceled when it ended otherwise, and TimeoutError when `timeout`
        seconds are over; it goes on then. `progress` switches the bar on or off. A job that is
        paused is waited for like any other.
        """
        found: AsyncJob = await self._run(self._wrapped.wait, timeout, progress=progress)
        return found

    async def cancel(self) -> AsyncJob:
        """Ask for its end; a job that runs ends when its runner hears of it."""
        found: AsyncJob = await self._run(self._wrapped.cancel)
        return found

    async def pause(self) -> AsyncJob:
        """Have it wait until it is resumed; a job that runs pauses when its batches have ended."""
        found: AsyncJob = await self._run(self._wrapped.pause)
        return found

    async def resume(self) -> AsyncJob:
        """Have it go on from what it had finished when it was paused."""
        found: AsyncJob = await self._run(self._wrapped.resume)
        return found

    async def errors(self, *, limit: int | None = None) -> list[RowError]:
        """Rows that the function failed on in this job, the newest first: all, or so many."""
        found: list[RowError] = await self._run(self._wrapped.errors, limit=limit)
        return found

    async def logs(self) -> list[str]:
        """The lines of its log, with what the function printed."""
        found: list[str] = await self._run(self._wrapped.logs)
        return found

    async def describe(self) -> dict[str, Any]:
        """Its request, state and result, as the server tells them."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    @property
    def seconds(self) -> float | None:
        """How long it has run, or ran, since it was taken first."""
        found: float | None = self._wrapped.seconds
        return found

    @property
    def summary(self) -> str:
        """What it did, or has done until now: rows, calls made and saved, failed rows."""
        found: str = self._wrapped.summary
        return found

    @property
    def status(self) -> str:
        found: str = self._wrapped.status
        return found

    @property
    def kind(self) -> str:
        found: str = self._wrapped.kind
        return found

    @property
    def target(self) -> str:
        found: str = self._wrapped.target
        return found

    @property
    def cluster(self) -> str:
        found: str = self._wrapped.cluster
        return found

    @property
    def phase(self) -> str | None:
        found: str | None = self._wrapped.phase
        return found

    @property
    def mode(self) -> str | None:
        found: str | None = self._wrapped.mode
        return found

    @property
    def reason(self) -> str | None:
        found: str | None = self._wrapped.reason
        return found

    @property
    def rows_total(self) -> int | None:
        found: int | None = self._wrapped.rows_total
        return found

    @property
    def rows_done(self) -> int:
        found: int = self._wrapped.rows_done
        return found

    @property
    def rows_failed(self) -> int:
        found: int = self._wrapped.rows_failed
        return found

    @property
    def rows_left(self) -> int:
        found: int = self._wrapped.rows_left
        return found

    @property
    def rows_by_state(self) -> dict[str, int] | None:
        found: dict[str, int] | None = self._wrapped.rows_by_state
        return found

    @property
    def rows_inserted(self) -> int | None:
        found: int | None = self._wrapped.rows_inserted
        return found

    @property
    def rows_updated(self) -> int | None:
        found: int | None = self._wrapped.rows_updated
        return found

    @property
    def rows_deleted(self) -> int | None:
        found: int | None = self._wrapped.rows_deleted
        return found

    @property
    def function_calls(self) -> int:
        found: int = self._wrapped.function_calls
        return found

    @property
    def calls_saved(self) -> int | None:
        found: int | None = self._wrapped.calls_saved
        return found

    @property
    def rows_per_second(self) -> float | None:
        found: float | None = self._wrapped.rows_per_second
        return found

    @property
    def seconds_left(self) -> float | None:
        found: float | None = self._wrapped.seconds_left
        return found

    @property
    def version(self) -> int | None:
        found: int | None = self._wrapped.version
        return found

    @property
    def attempt(self) -> int:
        found: int = self._wrapped.attempt
        return found

    @property
    def error(self) -> str:
        found: str = self._wrapped.error
        return found

    @property
    def waiting(self) -> str:
        found: str = self._wrapped.waiting
        return found

    @property
    def created_at(self) -> datetime.datetime | None:
        found: datetime.datetime | None = self._wrapped.created_at
        return found

    @property
    def started_at(self) -> datetime.datetime | None:
        found: datetime.datetime | None = self._wrapped.started_at
        return found

    @property
    def finished_at(self) -> datetime.datetime | None:
        found: datetime.datetime | None = self._wrapped.finished_at
        return found

    @property
    def properties(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._wrapped.properties
        return found

    @property
    def id(self) -> Any:
        return self._wrapped.id

    @property
    def not_previewed(self) -> Any:
        return self._wrapped.not_previewed
