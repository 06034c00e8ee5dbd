"""Table of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.generated.stored import AsyncStored
from penstock.sdk.tables.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.sdk.rows.reading import Data
    from penstock.sdk.rows.types import Schema
    from penstock.sdk.tables.refs import WriteResult


class AsyncTable(AsyncStored, of=Table):
    """A table of a lake, on its main branch at the newest version unless it was asked otherwise."""

    _wrapped: Table

    async def append(self, data: Data, schema: Schema = None) -> WriteResult:
        """Add rows, which take on the types of the table's columns.

        `data` is whatever `lake.create_table` takes.
        """
        found: WriteResult = await self._run(self._wrapped.append, data, schema)
        return found

    async def overwrite(self, data: Data, schema: Schema = None) -> WriteResult:
        """Replace all rows, and the columns; earlier versions stay."""
        found: WriteResult = await self._run(self._wrapped.overwrite, data, schema)
        return found

    async def merge(
        self,
        data: Data,
        on: str | Sequence[str],
        *,
        update: bool = True,
        insert: bool = True,
        delete_missing: bool = False,
        update_where: str | None = None,
        delete_where: str | None = None,
    ) -> WriteResult:
        """Bring rows in by a key: update those that are there, insert the others.

        `delete_missing` deletes rows whose key is not in the data.
        """
        found: WriteResult = await self._run(
            self._wrapped.merge,
            data,
            on,
            update=update,
            insert=insert,
            delete_missing=delete_missing,
            update_where=update_where,
            delete_where=delete_where,
        )
        return found

    async def update(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        values_sql: Mapping[str, str] | None = None,
        where: str | None = None,
    ) -> WriteResult:
        """Set columns to values, or to SQL expressions, in all rows or in those that match."""
        found: WriteResult = await self._run(
            self._wrapped.update, values, values_sql=values_sql, where=where
        )
        return found

    async def delete(self, where: str) -> WriteResult:
        """Delete the rows for which this SQL holds."""
        found: WriteResult = await self._run(self._wrapped.delete, where)
        return found

    async def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop the table with its files; views that read it refuse this.

        `cascade` takes them along, `force` lets them break.
        """
        await self._run(self._wrapped.drop, cascade=cascade, force=force)
