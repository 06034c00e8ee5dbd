"""The rows of a table: reading, searching and changing them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.other_clients import namespace_client
from penstock.sdk.tables.arrow import Data, Schema, is_path, to_stream
from penstock.sdk.tables.handle import Handle
from penstock.sdk.tables.query import Metric, Query, search_body, to_literal
from penstock.sdk.tables.refs import Merged

if TYPE_CHECKING:
    import lance
    import pandas as pd
    import polars as pl
    import pyarrow as pa

# How many rows a search gives that is not told.
NEAREST = 10


class Rows(Handle):
    """What a table does with rows."""

    @property
    def schema(self) -> "pa.Schema":
        return self._query().schema()

    def select(self, *columns: str | Sequence[str], **expressions: str) -> Query:
        """These columns, and SQL expressions under a name: `select("id", size="length(text)")`."""
        return self._query().select(*columns, **expressions)

    def where(self, filter: str) -> Query:
        """Only rows for which this SQL holds."""
        return self._query().where(filter)

    def limit(self, rows: int, offset: int = 0) -> Query:
        return self._query().limit(rows, offset)

    def search(
        self,
        query: str | Sequence[float] | None = None,
        *,
        vector: Sequence[float] | None = None,
        text: str | None = None,
        vector_column: str | None = None,
        text_columns: Sequence[str] | None = None,
        metric: Metric | None = None,
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
            metric=metric,
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

    def head(self, rows: int = 5) -> "pa.Table":
        return self._query().limit(rows).to_arrow()

    def count(self, where: str | None = None) -> int:
        query = self._query()
        return (query if where is None else query.where(where)).count()

    def __len__(self) -> int:
        return self.count()

    def lance(self) -> "lance.LanceDataset":
        """The dataset itself, for all that Lance can do; commits go through the catalog."""
        library: Any = load("lance", "lance()")
        client = namespace_client(self._wire)
        found: lance.LanceDataset = library.dataset(namespace_client=client, table_id=list(self.id))
        if self._branch is not None:
            found = found.checkout_version((self._branch, self._at))
        elif self._at is not None:
            found = found.checkout_version(self._at)
        return found

    def append(self, data: Data, schema: Schema = None) -> int:
        """Add rows; returns the version that has them.

        They take on the types of the table's columns, unless they are Parquet files.
        """
        body = to_stream(data, schema, self._types_for(data))
        return int(self._upload("insert", body, mode="append")["version"])

    def overwrite(self, data: Data, schema: Schema = None) -> int:
        """Replace all rows, and the columns; earlier versions stay. Returns the new one."""
        return int(self._upload("insert", to_stream(data, schema), mode="overwrite")["version"])

    def merge(
        self,
        data: Data,
        on: str | Sequence[str],
        *,
        update: bool = True,
        insert: bool = True,
        delete_missing: bool = False,
        update_where: str | None = None,
        delete_where: str | None = None,
    ) -> Merged:
        """Bring rows in by a key: update those that are there, insert the others.

        `delete_missing` deletes rows whose key is not in the data.
        """
        answer = self._upload(
            "merge_insert",
            to_stream(data, None, self._types_for(data)),
            on=on if isinstance(on, str) else list(on),
            when_matched_update_all=update,
            when_matched_update_all_filt=update_where,
            when_not_matched_insert_all=insert,
            when_not_matched_by_source_delete=delete_missing,
            when_not_matched_by_source_delete_filt=delete_where,
        )
        return Merged(
            answer["version"],
            answer.get("num_inserted_rows") or 0,
            answer.get("num_updated_rows") or 0,
            answer.get("num_deleted_rows") or 0,
        )

    def update(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        sql: Mapping[str, str] | None = None,
        where: str | None = None,
    ) -> int:
        """Set columns to values, or to SQL expressions, in rows that match; returns how many."""
        texts = {name: to_literal(value) for name, value in (values or {}).items()} | dict(
            sql or {}
        )
        body = {"updates": list(texts.items()), "predicate": where, "branch": self._branch}
        return int(self._change("update", body)["updated_rows"])

    def delete(self, where: str) -> int:
        """Delete the rows for which this SQL holds; returns the version without them."""
        return int(self._change("delete", {"predicate": where, "branch": self._branch})["version"])

    def _types_for(self, data: Data) -> "pa.Schema | None":
        return None if is_path(data) else self.schema
