"""Readable of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.wrapping import Awaited

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from penstock.aio.generated.query import AsyncQuery
    from penstock.sdk.tables.dependents import Dependents
    from penstock.sdk.tables.query import DistanceType


class AsyncReadable(Awaited[Any]):
    """What a table or view gives rows by."""

    async def schema(self) -> pa.Schema:
        """Its columns."""
        found: pa.Schema = await self._run(self._wrapped.schema)
        return found

    def select(self, *columns: str | Sequence[str], **expressions: str) -> AsyncQuery:
        """These columns, and SQL expressions under a name: `select("id", size="length(text)")`."""
        found: AsyncQuery = self._now(self._wrapped.select, *columns, **expressions)
        return found

    def where(self, where: str) -> AsyncQuery:
        """Only rows for which this SQL holds."""
        found: AsyncQuery = self._now(self._wrapped.where, where)
        return found

    def order_by(
        self,
        *columns: str,
        ascending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] = False,
    ) -> AsyncQuery:
        """Sorted by these columns; see `Query.order_by`."""
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

    def search(
        self,
        query: str | Sequence[float] | None = None,
        *,
        vector: Sequence[float] | None = None,
        text: str | None = None,
        vector_column: str | None = None,
        text_columns: Sequence[str] | None = None,
        distance_type: DistanceType | None = None,
        nprobes: int | None = None,
        refine_factor: int | None = None,
        prefilter: bool = True,
    ) -> AsyncQuery:
        """The nearest rows: by a vector, by a text, or with both by the ranks of the two.

        It gives ten rows unless `limit` says otherwise. A filter is applied before the search, or
        with `prefilter=False` to what the search has found.
        """
        found: AsyncQuery = self._now(
            self._wrapped.search,
            query,
            vector=vector,
            text=text,
            vector_column=vector_column,
            text_columns=text_columns,
            distance_type=distance_type,
            nprobes=nprobes,
            refine_factor=refine_factor,
            prefilter=prefilter,
        )
        return found

    async def to_arrow(self) -> pa.Table:
        found: pa.Table = await self._run(self._wrapped.to_arrow)
        return found

    async def to_pandas(self) -> pd.DataFrame:
        found: pd.DataFrame = await self._run(self._wrapped.to_pandas)
        return found

    async def to_polars(self) -> pl.DataFrame:
        found: pl.DataFrame = await self._run(self._wrapped.to_polars)
        return found

    async def to_list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self._run(self._wrapped.to_list)
        return found

    def to_batches(self, batch_size: int | None = None) -> AsyncIterator[pa.RecordBatch]:
        """All rows while they arrive; see `Query.to_batches`."""
        return self._each(self._wrapped.to_batches, batch_size)

    async def head(self, rows: int = 5) -> pa.Table:
        """The first rows."""
        found: pa.Table = await self._run(self._wrapped.head, rows)
        return found

    async def sample(self, rows: int = 5, *, seed: int | None = None) -> pa.Table:
        """So many rows at random; see `Query.sample`."""
        found: pa.Table = await self._run(self._wrapped.sample, rows, seed=seed)
        return found

    async def count(self, where: str | None = None) -> int:
        found: int = await self._run(self._wrapped.count, where)
        return found

    async def dependents(self, column: str | None = None) -> Dependents:
        """What depends on it, or on a column of a table, and what a change would break."""
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
