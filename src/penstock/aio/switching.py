"""Runs code of the SDK, which waits by blocking, so that its waits are awaits of an event loop.

The code runs in a greenlet of its own. Where it has to wait, it hands an awaitable to the coroutine
that started it, which awaits it and hands back what came of it. An await that is cancelled raises
in the code that waits.

Code that libraries call back from their own C code, or that works for long, runs in a thread
instead, and has the loop of the one who started it await.
"""

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread

from penstock.sdk.connection.optional_libraries import explain_missing

try:
    from greenlet import getcurrent, greenlet
except ModuleNotFoundError:
    raise explain_missing("penstock.aio", ["greenlet"], "client") from None

P = ParamSpec("P")
R = TypeVar("R")


# Whether this is a thread of `run_aside`, which has a context of its own.
_is_aside = ContextVar("_is_aside", default=False)


class _Call(greenlet):
    """A call that may wait by `wait_for`."""


async def run(call: Callable[P, R], /, *args: P.args, **named: P.kwargs) -> R:
    """Call a function of the SDK, and await what it waits for."""
    here = getcurrent()
    started = _Call(lambda: call(*args, **named), here)
    # What the caller set in its context is seen in the call.
    started.gr_context = here.gr_context
    told: Any = started.switch()
    while not started.dead:
        try:
            found = await told
        except BaseException as error:
            told = started.throw(error)
        else:
            told = started.switch(found)
    result: R = told
    return result


async def run_aside(call: Callable[P, R], /, *args: P.args, **named: P.kwargs) -> R:
    """The same in a thread."""

    def called() -> R:
        _is_aside.set(True)
        return call(*args, **named)

    return await anyio.to_thread.run_sync(called)


def wait_for(awaitable: Awaitable[R]) -> R:
    """Within these: what an awaitable gives, once it is there."""
    if _is_aside.get():
        return anyio.from_thread.run(_await, awaitable)
    here = getcurrent()
    if not isinstance(here, _Call) or here.parent is None:
        if isinstance(awaitable, Coroutine):
            awaitable.close()
        raise RuntimeError("an object of penstock.aio is used outside of an await")
    found: R = here.parent.switch(awaitable)
    return found


async def _await(awaitable: Awaitable[R]) -> R:
    return await awaitable
