"""Iceberg views: queries with a name, which hold no rows."""

import datetime
from dataclasses import dataclass
from typing import Any

from penstock.errors import PenstockError
from penstock.sdk.connection.names import Name, read_new_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.pictures.markup import table
from penstock.sdk.show import show_time, to_time
from penstock.sdk.tables.readable import Readable


@dataclass(frozen=True)
class ViewVersion:
    """A query that an Iceberg view has, or has had."""

    version: int
    query: str
    dialect: str
    created_at: datetime.datetime

    def __str__(self) -> str:
        return f"version {self.version}, {show_time(self.created_at)}: {self.query}"


class IcebergView(Readable):
    """A query with a name, which is run whenever it is read; Iceberg's clients know it as well."""

    def describe(self) -> dict[str, Any]:
        """Its query, columns, dialects, versions and properties, as the server tells them."""
        found: dict[str, Any] = self._wire.read(self._path("describe"))
        return found

    def query(self) -> str:
        """Its SQL: Spark's, if it has that."""
        return str(self.describe()["query"])

    def version(self) -> int:
        """The version of its query."""
        return int(self.describe()["version"])

    def history(self) -> list[ViewVersion]:
        """The queries that are kept, the newest first."""
        return [
            ViewVersion(each["version"], each["query"], each["dialect"], to_time(each["made_at"]))
            for each in self.describe()["versions"]
        ]

    def alter(self, query: str, *, dialect: str | None = None) -> "IcebergView":
        """Give it another query, as a new version, in its own dialect unless another is said."""
        self._wire.change(self._path("alter"), {"query": query, "dialect": dialect})
        return self

    def rename(self, name: Name, *, cascade: bool = False, force: bool = False) -> "IcebergView":
        """Give it another name; one without a namespace stays in its own.

        Iceberg views that name it refuse this; with `cascade` they follow, and `force` lets them
        break.
        """
        wanted = read_new_id(name, self.id)
        body = {"new_table_name": wanted[-1], "new_namespace_id": list(wanted[:-1])}
        self._change("rename", body, cascade=cascade, force=force)
        return IcebergView(self._wire, wanted)

    def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop it; views that read it refuse this.

        `cascade` takes them along, `force` lets them break.
        """
        self._wire.change(self._path("drop"), None, cascade=cascade, force=force)

    def _path(self, operation: str) -> str:
        return path_of("view", self.id, operation)

    def __repr__(self) -> str:
        try:
            shown = self.query()
        except PenstockError as error:
            shown = error.message
        return f"<IcebergView {self.name}: {shown}>"

    def _repr_html_(self) -> str:
        told = self.describe()
        rows = [(each["name"], each["type"]["type"]) for each in told["schema"]["fields"]]
        return table(f"Iceberg view {self.name}", rows, ("column", "type"), told["query"])
