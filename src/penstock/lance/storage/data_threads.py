"""Threads for work on data: a few at a time, some in a queue, and a refusal beyond that.

Lance holds a thread until it has a result. When work passes its deadline, the client gets an error
and the work goes on alone; another thread takes its place, up to twice the regular number. Beyond
that, work waits for one of them to end.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Generic, ParamSpec, TypeVar

from penstock.errors import TooManyRequests, Unavailable

P = ParamSpec("P")
T = TypeVar("T")


class Deadline:
    """The seconds that work has to make progress; it can report progress, or that it is waiting."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: float | None = time.monotonic()

    def restart(self) -> None:
        self._since = time.monotonic()

    def pause(self) -> None:
        """Stop the clock: time from here on is not the work's fault."""
        self._since = None

    @property
    def left(self) -> float:
        """Seconds until the work is overdue; does not count down while it waits for others."""
        since = self._since
        return self.seconds if since is None else since + self.seconds - time.monotonic()


class Workers:
    """Runs blocking work on datasets, so that the catalog's answers never wait for it."""

    def __init__(self, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(2 * threads, thread_name_prefix="data")
        self.slots = asyncio.Semaphore(threads)
        self._most, self.spare = most, threads
        self.busy = self.overdue = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work in one of the threads; raises at once when too much is waiting."""
        with self.admitted():
            return await self.run_admitted(work, *args, **kwargs)

    async def run_until(self, deadline: Deadline, work: Callable[[], T]) -> T:
        """Like `run`, with a deadline that starts when the work does."""
        with self.admitted():
            return await (await self._start(work, deadline))

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request while it runs or waits; raises at once when there are too many."""
        if self.busy >= self._most:
            raise TooManyRequests(
                f"{self.busy} data operations run or wait already",
                detail="retry after a moment, or raise server.max_data_requests",
            )
        self.busy += 1
        try:
            yield
        finally:
            self.busy -= 1

    async def run_admitted(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work for requests that were already admitted."""
        return await (await self._start(lambda: work(*args, **kwargs)))

    async def _start(
        self, work: Callable[[], T], deadline: Deadline | None = None
    ) -> asyncio.Future[T]:
        """Start work as soon as a thread is free; its place is returned when it ends."""
        await self.slots.acquire()
        loop = asyncio.get_running_loop()
        if deadline is not None:
            deadline.restart()
        try:
            job = self._pool.submit(work)
        except BaseException:
            self.slots.release()
            raise
        place = _Place[T](self, loop, deadline)
        job.add_done_callback(place.leave)
        return place.outcome

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


class _Place(Generic[T]):
    """A place for running work: returned once, early when the work is overdue."""

    def __init__(
        self, workers: Workers, loop: asyncio.AbstractEventLoop, deadline: Deadline | None
    ) -> None:
        self._workers, self._loop = workers, loop
        self._is_overdue = False
        self._timer: asyncio.TimerHandle | None = None
        self.outcome: asyncio.Future[T] = loop.create_future()
        if deadline is not None:
            self._watch(deadline)

    def leave(self, job: Future[T]) -> None:
        """Called in the work's thread when it has ended."""
        # A closed loop has no more work to start.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._end, job)

    def _watch(self, deadline: Deadline) -> None:
        self._timer = self._loop.call_later(max(0.05, deadline.left), self._look, deadline)

    def _look(self, deadline: Deadline) -> None:
        """Answer for overdue work, and give its place to others."""
        if deadline.left > 0:
            self._watch(deadline)
            return
        if not self.outcome.done():
            self.outcome.set_exception(
                Unavailable(
                    f"the query had no result after {deadline.seconds:g} seconds",
                    detail="ask for less of the table, or raise server.query_seconds",
                )
            )
        if self._workers.overdue >= self._workers.spare:
            self._watch(deadline)
            return
        self._is_overdue = True
        self._workers.overdue += 1
        self._workers.slots.release()

    def _end(self, job: Future[T]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._is_overdue:
            self._workers.overdue -= 1
        else:
            self._workers.slots.release()
        # A caller that was told it is overdue, or that left, is not told how it ended.
        if self.outcome.done():
            return
        if job.cancelled():
            self.outcome.cancel()
        elif (error := job.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(job.result())
