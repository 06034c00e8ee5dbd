"""One working request for every change that the two protocols have."""

from tests.harness.clients.changes import columns, iceberg, rows, tables, views
from tests.harness.clients.changes.requests import Prepare

# By the name of the operation, and what is special about the request if there are several.
LANCE: dict[str, Prepare] = {
    **tables.CHANGES,
    **rows.CHANGES,
    **columns.CHANGES,
    **views.CHANGES,
}
ICEBERG = iceberg.CHANGES
CHANGES = {f"Lance {name}": prepare for name, prepare in LANCE.items()} | {
    f"Iceberg {name}": prepare for name, prepare in ICEBERG.items()
}
