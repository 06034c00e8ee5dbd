"""Names on the command line that tables and views of both kinds may have."""

from penstock.errors import NotFound, TableNotFound
from penstock.sdk.connection.wire import Name
from penstock.sdk.lake import Lake
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView


def get_readable(lake: Lake, name: Name) -> Table | IcebergView:
    """The table, materialized view or Iceberg view of this name."""
    try:
        return lake.table(name)
    except TableNotFound as error:
        try:
            return lake.iceberg_view(name)
        except NotFound:
            raise error from None
