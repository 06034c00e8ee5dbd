"""Query of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited
from penstock.sdk.tables.query import Query

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa


class AsyncQuery(Awaited[Query], of=Query):
    """Some rows and columns of a table; its `select`, `where` and `search` make one."""

    def select(self, *columns: str | Sequence[str], **expressions: str) -> AsyncQuery:
        """These columns, and SQL expressions under a name: `select("id", size="length(text)")`."""
        found: AsyncQuery = self._now(self._wrapped.select, *columns, **expressions)
        return found

    def where(self, where: str) -> AsyncQuery:
        """Only rows for which this SQL holds; several filters all have to."""
        found: AsyncQuery = self._now(self._wrapped.where, where)
        return found

    def order_by(
        self,
        *columns: str,
        ascending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] = False,
    ) -> AsyncQuery:
        """Sorted by these columns, the first one first.

        `ascending` and `nulls_first` are for all of them, or lists with a value for each.
        """
        found: AsyncQuery = self._now(
            self._wrapped.order_by, *columns, ascending=ascending, nulls_first=nulls_first
        )
        return found

    def limit(self, rows: int) -> AsyncQuery:
        """At most so many rows."""
        found: AsyncQuery = self._now(self._wrapped.limit, rows)
        return found

    def offset(self, rows: int) -> AsyncQuery:
        """Without so many rows at the beginning."""
        found: AsyncQuery = self._now(self._wrapped.offset, rows)
        return found

    async def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        found: pa.Table = await self._run(self._wrapped.to_arrow)
        return found

    def to_batches(self, batch_size: int | None = None) -> AsyncIterator[pa.RecordBatch]:
        """The rows while they arrive, in batches of at most so many, of one version of the table.

        Memory stays bounded. A server drops a reader that takes nothing for a minute.
        """
        return self._each(self._wrapped.to_batches, batch_size)

    async def head(self, rows: int = 5) -> pa.Table:
        """The first rows."""
        found: pa.Table = await self._run(self._wrapped.head, rows)
        return found

    async def sample(self, rows: int = 5, *, seed: int | None = None) -> pa.Table:
        """So many rows at random; the same ones for the same seed, while the table has them."""
        found: pa.Table = await self._run(self._wrapped.sample, rows, seed=seed)
        return found

    async def to_pandas(self) -> pd.DataFrame:
        found: pd.DataFrame = await self._run(self._wrapped.to_pandas)
        return found

    async def to_polars(self) -> pl.DataFrame:
        found: pl.DataFrame = await self._run(self._wrapped.to_polars)
        return found

    async def to_list(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        found: list[dict[str, Any]] = await self._run(self._wrapped.to_list)
        return found

    async def count(self) -> int:
        """How many rows there are, whatever the limit."""
        found: int = await self._run(self._wrapped.count)
        return found

    async def explain(self, *, verbose: bool = False) -> str:
        """How Lance would carry it out."""
        found: str = await self._run(self._wrapped.explain, verbose=verbose)
        return found

    async def schema(self) -> pa.Schema:
        """The columns that it gives; nothing is read."""
        found: pa.Schema = await self._run(self._wrapped.schema)
        return found

    async def body(self) -> dict[str, Any]:
        """The request's body."""
        found: dict[str, Any] = await self._run(self._wrapped.body)
        return found

    async def to_sql(self) -> str:
        """The query in Lance's SQL, as the source of a view."""
        found: str = await self._run(self._wrapped.to_sql)
        return found
