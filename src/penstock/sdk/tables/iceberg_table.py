"""Iceberg tables: this server has their metadata, and engines read and write their rows."""

from typing import Any

from penstock.sdk.connection.wire import path_of
from penstock.sdk.pictures.markup import table
from penstock.sdk.tables.dependents import Dependents, read_dependents
from penstock.sdk.tables.handle import Handle


class IcebergTable(Handle):
    """A table of the Iceberg protocol; `lake.iceberg_catalog()` reads and changes it."""

    def describe(self) -> dict[str, Any]:
        """Its columns, partitioning, snapshots and places, as the server tells them."""
        found: dict[str, Any] = self._wire.read(path_of("iceberg_table", self.id, "describe"))
        return found

    def dependents(self, column: str | None = None) -> Dependents:
        """The views that read it; who reads a column of it, only engines know."""
        return read_dependents(self.name, self._read("dependents", {"column": column}))

    def __repr__(self) -> str:
        return f"<IcebergTable {self.name}>"

    def _repr_html_(self) -> str:
        told = self.describe()
        rows = [(each["name"], each["type"]["type"]) for each in told["schema"]["fields"]]
        return table(f"Iceberg table {self.name}", rows, ("column", "type"), told["location"])
