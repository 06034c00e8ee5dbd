"""Job of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited
from penstock.sdk.jobs.job import Job

if TYPE_CHECKING:
    from penstock.sdk.jobs.job import RowError


class AsyncJob(Awaited[Job], of=Job):
    """A backfill, a refresh or a preview that was requested."""

    @property
    def status(self) -> str:
        """QUEUED, RUNNING, PAUSED, SUCCEEDED, FAILED or CANCELED, as it is now."""
        found: str = self._wrapped.status
        return found

    @property
    def done(self) -> bool:
        found: bool = self._wrapped.done
        return found

    @property
    def properties(self) -> dict[str, str]:
        """Everything that is known of it, as text: `kind`, `target`, `rows_done`, `error` …"""
        found: dict[str, str] = self._wrapped.properties
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
    def error(self) -> str:
        """Why it failed; empty when it did not."""
        found: str = self._wrapped.error
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
        """Rows that a backfill left for another one, those aside that failed."""
        found: int = self._wrapped.rows_left
        return found

    @property
    def rows_by_state(self) -> dict[str, int] | None:
        """All rows of the column after a backfill, as `fresh`, `stale`, `unfilled` or `failed`."""
        found: dict[str, int] | None = self._wrapped.rows_by_state
        return found

    @property
    def function_calls(self) -> int:
        """How many rows were given to the function, or partitions to a udtf."""
        found: int = self._wrapped.function_calls
        return found

    @property
    def version(self) -> int | None:
        """The version that it committed or found."""
        found: int | None = self._wrapped.version
        return found

    @property
    def result(self) -> dict[str, Any]:
        """What it reported at its end; empty before that."""
        found: dict[str, Any] = self._wrapped.result
        return found

    async def wait(self, timeout: float | None = None, progress: bool | None = None) -> AsyncJob:
        """Wait until it has succeeded, with a bar on a terminal or in a notebook.

        Raises JobFailed or JobCanceled when it ended otherwise, and TimeoutError when `timeout`
        seconds are over; it goes on then. `progress` switches the bar on or off. A job that is
        paused is waited for like any other.
        """
        found: AsyncJob = await self._run(self._wrapped.wait, timeout, progress)
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

    async def errors(self, limit: int = 100) -> list[RowError]:
        """Rows that the function failed on in this job, the newest first."""
        found: list[RowError] = await self._run(self._wrapped.errors, limit)
        return found

    async def logs(self) -> list[str]:
        """The lines of its log, with what the function printed."""
        found: list[str] = await self._run(self._wrapped.logs)
        return found

    async def describe(self) -> dict[str, Any]:
        """Its `status` and `properties`, as the server tells them."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    @property
    def id(self) -> Any:
        return self._wrapped.id

    @property
    def not_previewed(self) -> Any:
        return self._wrapped.not_previewed
