"""pyiceberg's client of the server, and rows for it."""

from typing import Any

import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.engines.checks import Rows
from tests.engines.place import Place

FIELDS = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])


def connect(place: Place) -> RestCatalog:
    return RestCatalog("penstock", uri=place.iceberg)


def people(*pairs: tuple[int, str]) -> pa.Table:
    """Rows with an id and a name."""
    return pa.Table.from_pylist([{"id": id, "name": name} for id, name in pairs], FIELDS)


def seen(table: Table, *columns: str, **scan: Any) -> Rows:
    """What a scan finds, ordered."""
    found = table.scan(selected_fields=columns or ("*",), **scan).to_arrow()
    return sorted([list(row.values()) for row in found.to_pylist()], key=repr)
