"""The namespaces of a lake and its tables, and what is behind any name."""

import contextlib
from collections.abc import Mapping
from typing import Literal

import msgspec

from penstock.errors import InvalidRequest, NamespaceNotFound, NotFound, TableNotFound
from penstock.sdk.connection.names import Name, read_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.contents.contents import MODES, Contents, IfExists, check_word, missing
from penstock.sdk.rows.reading import Data, open_rows
from penstock.sdk.rows.sending import to_body
from penstock.sdk.rows.types import Schema
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View, is_view

# What the server calls each kind.
KINDS = {"lance": "table", "iceberg": "iceberg_table"}


class Tables(Contents):
    """What a lake does with namespaces and tables."""

    def namespaces(self, namespace: Name | None = None) -> list[str]:
        """The names of all namespaces, or of those directly in one; `""` is the root."""
        return self._names(namespace, "namespace")

    def create_namespace(
        self,
        name: Name,
        *,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["error", "ok"] = "error",
    ) -> None:
        """Make a namespace, and those that it is to be in as far as they are missing."""
        check_word("if_exists", if_exists, "error", "ok")
        id = read_id(name)
        body = {"mode": MODES[if_exists], "properties": dict(properties or {})}
        try:
            self._wire.change(path_of("namespace", id, "create"), body)
        except NamespaceNotFound:
            if len(id) < 2:
                raise
            self.create_namespace(id[:-1], if_exists="ok")
            self._wire.change(path_of("namespace", id, "create"), body)

    def drop_namespace(
        self, name: Name, *, missing_ok: bool = False, cascade: bool = False
    ) -> None:
        """Drop a namespace; `cascade` with everything in it, and with views that read it."""
        body = {"behavior": "cascade" if cascade else "restrict"}
        with missing(missing_ok):
            self._wire.change(path_of("namespace", read_id(name), "drop"), body, cascade=cascade)

    def open(self, name: Name) -> Table | View | IcebergView | IcebergTable:
        """The table or view of this name, whatever kind it is of."""
        try:
            return self._open_stored(name)
        except TableNotFound as error:
            id = read_id(name)
            for found in (IcebergView(self._wire, id), IcebergTable(self._wire, id)):
                with contextlib.suppress(NotFound):
                    found.describe()
                    return found
            raise error

    def exists(self, name: Name) -> bool:
        """Whether there is a table or view of this name, of any kind."""
        try:
            self.open(name)
        except NotFound:
            return False
        return True

    def tables(
        self, namespace: Name | None = None, *, kind: Literal["lance", "iceberg"] = "lance"
    ) -> list[str]:
        """The names of all tables of a kind, or of those directly in a namespace."""
        check_word("kind", kind, *KINDS)
        return self._names(namespace, KINDS[kind])

    def table(self, name: Name) -> Table:
        """A table that exists."""
        found = self._open_stored(name)
        if not isinstance(found, Table):
            raise InvalidRequest(
                f"{found.name} is a materialized view", detail="use lake.view for views"
            )
        return found

    def iceberg_table(self, name: Name) -> IcebergTable:
        """An Iceberg table that exists."""
        found = IcebergTable(self._wire, read_id(name))
        found.describe()
        return found

    def create_table(
        self,
        name: Name,
        data: Data = None,
        schema: Schema = None,
        *,
        if_exists: IfExists = "error",
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Make a table of whatever holds rows, which are sent while they are read.

        data: an Arrow table, reader or dataset, a DataFrame of any library, a list of dicts, a dict
            of columns, an array of vectors, a generator of dicts or batches, or the paths of CSV,
            JSON lines, Parquet or Arrow files: files, folders, patterns, `s3://…`.
        schema: types for columns that need one, such as `{"vector": penstock.vector(256)}`. Without
            data, all columns of an empty table.
        if_exists: `ok` leaves a table of that name as it is, `replace` gives it these columns and
            rows as a new version.
        """
        check_word("if_exists", if_exists, *MODES)
        id = read_id(name)
        told = msgspec.json.encode(properties).decode() if properties else None
        path = path_of("table", id, "create")
        mode = MODES[if_exists]
        self._wire.upload(path, to_body(open_rows(data, schema)), mode=mode, properties=told)
        return Table(self._wire, id)

    def drop_table(
        self,
        name: Name,
        *,
        missing_ok: bool = False,
        cascade: bool = False,
        force: bool = False,
    ) -> None:
        """Drop a table with its files; see `Table.drop`."""
        with missing(missing_ok):
            Table(self._wire, read_id(name)).drop(cascade=cascade, force=force)

    def __getitem__(self, name: Name) -> Table | View | IcebergView | IcebergTable:
        return self.open(name)

    def __contains__(self, name: Name) -> bool:
        return self.exists(name)

    def _open_stored(self, name: Name) -> Table | View:
        id = read_id(name)
        told = self._wire.read(path_of("table", id, "describe"))
        return (View if is_view(told["properties"]) else Table)(self._wire, id)
