"""Names on the command line that tables and views of several kinds may have."""

from penstock.errors import InvalidRequest
from penstock.sdk.connection.names import Name
from penstock.sdk.lake import Lake
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View


def get_readable(lake: Lake, name: Name) -> Table | View | IcebergView:
    """The table, materialized view or Iceberg view of this name."""
    found = lake.open(name)
    if isinstance(found, IcebergTable):
        raise InvalidRequest(
            f"{found.name} is an Iceberg table, which engines read and write",
            detail="read it with `penstock sql`, or with an engine",
        )
    return found


def get_stored(lake: Lake, name: Name) -> Table | View:
    """The table or materialized view of this name."""
    found = get_readable(lake, name)
    if isinstance(found, IcebergView):
        raise InvalidRequest(
            f"{found.name} is an Iceberg view, which has no rows of its own",
            detail="name a table or a materialized view",
        )
    return found
