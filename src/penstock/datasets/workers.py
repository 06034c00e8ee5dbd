"""The threads that work on data: a few at a time, some in a queue, and a refusal beyond that."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from penstock.errors import TooManyRequests

P = ParamSpec("P")
T = TypeVar("T")


class Workers:
    """Runs blocking work on datasets, so that the catalog's answers never wait for it."""

    def __init__(self, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="data")
        self._most = most
        self.busy = 0

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run work in one of the threads; raises at once when too much waits already."""
        with self.admitted():
            return await self.run_admitted(work, *args, **kwargs)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count a request as long as it runs or waits; raises at once when there are too many."""
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
        """Run work for requests that were let in before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: work(*args, **kwargs))

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)
