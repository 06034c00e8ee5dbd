"""IcebergView of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.generated.readable import AsyncReadable
from penstock.sdk.views.iceberg_views import IcebergView

if TYPE_CHECKING:
    from penstock.sdk.connection.names import Name
    from penstock.sdk.views.iceberg_views import ViewVersion


class AsyncIcebergView(AsyncReadable, of=IcebergView):
    """A query with a name, which is run whenever it is read; Iceberg's clients know it as well."""

    _wrapped: IcebergView

    async def describe(self) -> dict[str, Any]:
        """Its query, columns, dialects, versions and properties, as the server tells them."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    async def query(self) -> str:
        """Its SQL: Spark's, if it has that."""
        found: str = await self._run(self._wrapped.query)
        return found

    async def version(self) -> int:
        """The version of its query."""
        found: int = await self._run(self._wrapped.version)
        return found

    async def history(self) -> list[ViewVersion]:
        """The queries that are kept, the newest first."""
        found: list[ViewVersion] = await self._run(self._wrapped.history)
        return found

    async def alter(self, query: str, *, dialect: str | None = None) -> AsyncIcebergView:
        """Give it another query, as a new version, in its own dialect unless another is said."""
        found: AsyncIcebergView = await self._run(self._wrapped.alter, query, dialect=dialect)
        return found

    async def rename(
        self, name: Name, *, cascade: bool = False, force: bool = False
    ) -> AsyncIcebergView:
        """Give it another name; one without a namespace stays in its own.

        Iceberg views that name it refuse this; with `cascade` they follow, and `force` lets them
        break.
        """
        found: AsyncIcebergView = await self._run(
            self._wrapped.rename, name, cascade=cascade, force=force
        )
        return found

    async def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop it; views that read it refuse this.

        `cascade` takes them along, `force` lets them break.
        """
        await self._run(self._wrapped.drop, cascade=cascade, force=force)
