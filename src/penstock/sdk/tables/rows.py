"""The rows of a table, and changes of them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.other_clients import namespace_client
from penstock.sdk.tables.arrow import Data, Schema, is_path, to_stream
from penstock.sdk.tables.query import to_literal
from penstock.sdk.tables.readable import Readable
from penstock.sdk.tables.refs import Merged

if TYPE_CHECKING:
    import lance
    import pyarrow as pa


class Rows(Readable):
    """What a table does with rows."""

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
