"""Reading and searching the rows of a table or view."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.sdk.tables.dependents import Dependents, read_dependents
from penstock.sdk.tables.handle import Handle
from penstock.sdk.tables.query import DistanceType, Query, search_body

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# How many rows a search gives that is not told.
NEAREST = 10


class Readable(Handle):
    """What a table or view gives rows by."""

    def schema(self) -> "pa.Schema":
        """Its columns."""
        return self._query().schema()

    def select(self, *columns: str | Sequence[str], **expressions: str) -> Query:
        """These columns, and SQL expressions under a name: `select("id", size="length(text)")`."""
        return self._query().select(*columns, **expressions)

    def where(self, where: str) -> Query:
        """Only rows for which this SQL holds."""
        return self._query().where(where)

    def order_by(
        self,
        *columns: str,
        ascending: bool | Sequence[bool] = True,
        nulls_first: bool | Sequence[bool] = False,
    ) -> Query:
        """Sorted by these columns; see `Query.order_by`."""
        return self._query().order_by(*columns, ascending=ascending, nulls_first=nulls_first)

    def limit(self, rows: int) -> Query:
        """At most so many rows."""
        return self._query().limit(rows)

    def offset(self, rows: int) -> Query:
        """Without so many rows at the beginning."""
        return self._query().offset(rows)

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
    ) -> Query:
        """The nearest rows: by a vector, by a text, or with both by the ranks of the two.

        It gives ten rows unless `limit` says otherwise. A filter is applied before the search, or
        with `prefilter=False` to what the search has found.
        """
        if isinstance(query, str):
            text = query
        elif query is not None:
            vector = query
        body = search_body(
            vector,
            text,
            vector_column=vector_column,
            text_columns=text_columns,
            distance_type=distance_type,
            nprobes=nprobes,
            refine_factor=refine_factor,
            prefilter=prefilter,
        )
        return Query(
            self._wire,
            self.id,
            rows=NEAREST,
            version=self._at,
            branch=self._branch,
            search=body,
        )

    def to_arrow(self) -> "pa.Table":
        return self._query().to_arrow()

    def to_pandas(self) -> "pd.DataFrame":
        return self._query().to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        return self._query().to_polars()

    def to_list(self) -> list[dict[str, Any]]:
        return self._query().to_list()

    def to_batches(self, batch_size: int | None = None) -> "pa.RecordBatchReader":
        """All rows while they arrive; see `Query.to_batches`."""
        return self._query().to_batches(batch_size)

    def head(self, rows: int = 5) -> "pa.Table":
        """The first rows."""
        return self._query().head(rows)

    def sample(self, rows: int = 5, *, seed: int | None = None) -> "pa.Table":
        """So many rows at random; see `Query.sample`."""
        return self._query().sample(rows, seed=seed)

    def count(self, where: str | None = None) -> int:
        query = self._query()
        return (query if where is None else query.where(where)).count()

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """True, also without rows."""
        return True

    def dependents(self, column: str | None = None) -> Dependents:
        """What depends on it, or on a column of a table, and what a change would break."""
        name = self.name if column is None else f"{self.name}.{column}"
        return read_dependents(name, self._read("dependents", {"column": column}))
