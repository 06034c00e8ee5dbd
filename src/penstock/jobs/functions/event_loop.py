"""Async functions: one event loop for each that is loaded, and several calls under way in it.

The loop runs in a thread of its own for as long as the function is loaded, so that clients which a
function keeps open stay with their loop.
"""

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterable, Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeVar

from penstock.model.functions import Function

T = TypeVar("T")

# How many calls are under way at once where nobody says it, of single rows and of batches.
DEFAULT_CALLS, DEFAULT_BATCHES = 16, 4
LOOK_SECONDS = 0.1


def count_at_once(function: Function, kind: str) -> int:
    """How many calls of an async function are under way at once: of rows, or of batches."""
    if function.concurrency is not None:
        return function.concurrency
    # Partitions may be large.
    return {"scalar": DEFAULT_CALLS, "chunker": DEFAULT_CALLS, "udtf": 1}.get(kind, DEFAULT_BATCHES)


class CallLoop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._is_closed = False
        threading.Thread(target=self._run, name="event loop", daemon=True).start()

    def run(
        self, work: Coroutine[Any, Any, T], is_stopped: Callable[[], bool] = lambda: False
    ) -> T:
        """Run a coroutine to its end; it is canceled, and CancelledError raised, on a stop."""
        tasks: list[asyncio.Task[Any] | None] = []

        async def noted() -> T:
            tasks.append(asyncio.current_task())
            return await work

        future = asyncio.run_coroutine_threadsafe(noted(), self._loop)
        try:
            is_canceled = False
            while not wait([future], LOOK_SECONDS).done:
                if tasks and tasks[0] and not is_canceled and is_stopped():
                    # What it has to clean up is waited for.
                    self._loop.call_soon_threadsafe(tasks[0].cancel)
                    is_canceled = True
            return future.result()
        except BaseException:
            # Of a signal, say, which interrupts whoever waits here.
            future.cancel()
            raise

    def call(self, make: Callable[[], T]) -> T:
        """Call a plain function within the loop, as clients want to be made."""

        async def made() -> tuple[T | None, BaseException | None]:
            try:
                return make(), None
            # An exit would end the loop; whoever asked is told.
            except BaseException as error:
                return None, error

        found, error = self.run(made())
        if error is not None:
            raise error
        return found  # type: ignore[return-value]

    def close(self) -> None:
        self._is_closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._is_closed:
            try:
                self._loop.run_forever()
            # A task that the function started by itself may raise an exit; others go on.
            except (KeyboardInterrupt, SystemExit):
                continue
        self._loop.close()


@dataclass(slots=True)
class Called:
    """What came of rows: the values of those that were computed, and why others have none."""

    values: dict[int, Any] = field(default_factory=dict)
    errors: dict[int, BaseException] = field(default_factory=dict)


class Verdict(Enum):
    """What an error of a row means for the others."""

    GO_ON = "go on"
    # No more calls are begun.
    LET_END = "let end"
    # Those under way are canceled, too.
    END = "end"


async def call_rows(
    call: Callable[..., Awaitable[Any]],
    rows: Sequence[Sequence[Any]],
    room: asyncio.Semaphore,
    found: Called,
    *,
    at_once: int,
    seconds: float | None,
    judge: Callable[[BaseException], Verdict],
) -> None:
    """Call a function for rows, as many at once as there is room for."""
    if not rows:
        return
    places = iter(range(len(rows)))
    workers: list[asyncio.Task[None]] = []
    is_ending = False

    async def work() -> None:
        nonlocal is_ending
        # Kept from row to row, so that a batch ends before the rows of the next one are called.
        async with room:
            for place in places:
                if is_ending:
                    return
                try:
                    found.values[place] = await _within(call(*rows[place]), seconds)
                    continue
                # Whatever the function raises is the row's failure: an exit, a panic of a library.
                except BaseException as error:
                    task = asyncio.current_task()
                    if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
                        raise
                    found.errors[place] = error
                verdict = judge(found.errors[place])
                is_ending = is_ending or verdict is not Verdict.GO_ON
                if verdict is Verdict.END:
                    for worker in workers:
                        if worker is not asyncio.current_task():
                            worker.cancel()

    workers += [asyncio.create_task(work()) for _ in range(min(at_once, len(rows)))]
    try:
        await asyncio.wait(workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


async def _within(call: Awaitable[T], seconds: float | None) -> T:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await call
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"took longer than {seconds:g} s") from error
        raise


def is_async(called: Any) -> bool:
    """Whether calls give something to await, or to iterate over with awaits."""
    while isinstance(called, functools.partial):
        called = called.func
    if inspect.isclass(called):
        called = getattr(called, "__call__", None)  # noqa: B004
    elif not inspect.isroutine(called):
        called = getattr(type(called), "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def gathered(call: Callable[..., Any], to_rows: Callable[[Any], list[Any]]) -> Callable[..., Any]:
    """A function that makes rows, which has yielded everything when it returns."""

    async def called(*values: Any) -> list[Any]:
        found = call(*values)
        if isinstance(found, AsyncIterable):
            return [item async for item in found]
        return to_rows(await found)

    return called


def awaited(call: Callable[..., Any], loop: CallLoop) -> Callable[..., Any]:
    """A function of whole batches, which waits for what it awaits."""

    async def run(values: Sequence[Any]) -> tuple[Any, BaseException | None]:
        try:
            return await call(*values), None
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            return None, error

    def called(*values: Any) -> Any:
        found, error = loop.run(run(values))
        if error is not None:
            raise error
        return found

    return called
