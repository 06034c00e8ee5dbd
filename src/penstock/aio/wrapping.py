"""An object of the SDK whose methods are awaited, and what goes in and out of its calls."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Generic, TypeVar

import anyio

from penstock.aio.switching import run, run_aside

S = TypeVar("S")

# The class that is awaited, by the SDK's own.
_TWINS: dict[type, type["Awaited[Any]"]] = {}


class Awaited(Generic[S]):
    """An object of the SDK behind methods that are awaited."""

    def __init__(self, wrapped: S) -> None:
        self._wrapped = wrapped

    def __init_subclass__(cls, of: type | None = None) -> None:
        if of is not None:
            _TWINS[of] = cls

    def __repr__(self) -> str:
        # What the object itself shows may have to be asked for.
        known = (getattr(self._wrapped, each, None) for each in ("name", "id", "url"))
        return f"<{type(self).__name__} {next(filter(None, known), '')}>"

    async def _run(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        return wrap(await run(call, *map(unwrap, args), **_unwrap_named(named)))

    def _now(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Call what waits for nothing."""
        return wrap(call(*map(unwrap, args), **_unwrap_named(named)))

    async def _each(self, call: Callable[..., Any], *args: Any, **named: Any) -> AsyncIterator[Any]:
        held = [await run_aside(call, *map(unwrap, args), **_unwrap_named(named))]
        done = object()
        try:
            while (each := await run_aside(next, held[0], done)) is not done:
                yield wrap(each)
        finally:
            # What is left of an answer is closed by letting go of its reader, where that can await.
            with anyio.CancelScope(shield=True):
                await run_aside(held.clear)


def wrap(found: Any) -> Any:
    """What a call gave, with objects whose methods wait as objects whose methods are awaited."""
    twin = _TWINS.get(type(found))
    if twin is not None:
        return twin(found)
    if type(found) is list:
        return [wrap(each) for each in found]
    return found


def unwrap(given: Any) -> Any:
    """What is given to a call: of an object whose methods are awaited, the SDK's own."""
    return given._wrapped if isinstance(given, Awaited) else given


def _unwrap_named(named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: unwrap(each) for name, each in named.items()}
