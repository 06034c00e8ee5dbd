"""Tables: what is stored under a name, and changes of its rows."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sdk.rows.reading import Data, open_rows
from penstock.sdk.rows.sending import to_body
from penstock.sdk.rows.types import Schema
from penstock.sdk.tables.query import to_literal
from penstock.sdk.tables.refs import WriteResult, read_result
from penstock.sdk.tables.stored import Stored


class Table(Stored):
    """A table of a lake, on its main branch at the newest version unless it was asked otherwise."""

    def append(self, data: Data, schema: Schema = None) -> WriteResult:
        """Add rows, which take on the types of the table's columns.

        `data` is whatever `lake.create_table` takes.
        """
        body = to_body(open_rows(data, schema, self.schema()))
        return read_result(self._upload("insert", body, mode="append"))

    def overwrite(self, data: Data, schema: Schema = None) -> WriteResult:
        """Replace all rows, and the columns; earlier versions stay."""
        body = to_body(open_rows(data, schema))
        return read_result(self._upload("insert", body, mode="overwrite"))

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
    ) -> WriteResult:
        """Bring rows in by a key: update those that are there, insert the others.

        `delete_missing` deletes rows whose key is not in the data.
        """
        answer = self._upload(
            "merge_insert",
            to_body(open_rows(data, None, self.schema())),
            on=on if isinstance(on, str) else list(on),
            when_matched_update_all=update,
            when_matched_update_all_filt=update_where,
            when_not_matched_insert_all=insert,
            when_not_matched_by_source_delete=delete_missing,
            when_not_matched_by_source_delete_filt=delete_where,
        )
        return read_result(answer)

    def update(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        values_sql: Mapping[str, str] | None = None,
        where: str | None = None,
    ) -> WriteResult:
        """Set columns to values, or to SQL expressions, in all rows or in those that match."""
        texts = {name: to_literal(value) for name, value in (values or {}).items()} | dict(
            values_sql or {}
        )
        body = {"updates": list(texts.items()), "predicate": where, "branch": self._branch}
        return read_result(self._change("update", body))

    def delete(self, where: str) -> WriteResult:
        """Delete the rows for which this SQL holds."""
        return read_result(self._change("delete", {"predicate": where, "branch": self._branch}))

    def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop the table with its files; views that read it refuse this.

        `cascade` takes them along, `force` lets them break.
        """
        self._note("drop", None, cascade=cascade, force=force)
