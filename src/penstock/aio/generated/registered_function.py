"""RegisteredFunction of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited
from penstock.sdk.functions.registered import RegisteredFunction

if TYPE_CHECKING:
    pass


class AsyncRegisteredFunction(Awaited[RegisteredFunction], of=RegisteredFunction):
    """A function of a lake by its name; of one version, or of the newest at each use."""

    @property
    def name(self) -> str:
        """Its name with its namespaces, as in `ml.embed`."""
        found: str = self._wrapped.name
        return found

    async def describe(self) -> dict[str, Any]:
        """All that is known of it: `signature`, `manifest`, `source`, `used_by` and more."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    async def versions(self) -> list[AsyncRegisteredFunction]:
        """All its versions, the oldest first."""
        found: list[AsyncRegisteredFunction] = await self._run(self._wrapped.versions)
        return found

    async def used_by(self) -> list[dict[str, Any]]:
        """The columns and views that use any of its versions, as far as one may see them."""
        found: list[dict[str, Any]] = await self._run(self._wrapped.used_by)
        return found

    async def disable(self) -> AsyncRegisteredFunction:
        """Refuse new uses and new jobs, of this version or of all; what is running ends."""
        found: AsyncRegisteredFunction = await self._run(self._wrapped.disable)
        return found

    async def enable(self) -> AsyncRegisteredFunction:
        found: AsyncRegisteredFunction = await self._run(self._wrapped.enable)
        return found

    async def set_properties(self, **properties: str | None) -> AsyncRegisteredFunction:
        """Set properties of the function as a whole; None removes one."""
        found: AsyncRegisteredFunction = await self._run(self._wrapped.set_properties, **properties)
        return found

    async def drop(self) -> None:
        """Drop this version, or all of them; what uses it refuses this."""
        await self._run(self._wrapped.drop)

    @property
    def id(self) -> Any:
        return self._wrapped.id

    @property
    def version(self) -> Any:
        return self._wrapped.version
