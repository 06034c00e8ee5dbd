"""IcebergTable of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited
from penstock.sdk.tables.iceberg_table import IcebergTable

if TYPE_CHECKING:
    from penstock.sdk.tables.dependents import Dependents


class AsyncIcebergTable(Awaited[IcebergTable], of=IcebergTable):
    """A table of the Iceberg protocol; `lake.iceberg_catalog()` reads and changes it."""

    async def describe(self) -> dict[str, Any]:
        """Its columns, partitioning, snapshots and places, as the server tells them."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    async def dependents(self, column: str | None = None) -> Dependents:
        """The views that read it; who reads a column of it, only engines know."""
        found: Dependents = await self._run(self._wrapped.dependents, column)
        return found

    @property
    def name(self) -> str:
        """Its name with its namespaces, as in `shop.items`."""
        found: str = self._wrapped.name
        return found

    @property
    def id(self) -> Any:
        return self._wrapped.id
