"""Names on the command line that tables and views of all kinds may have."""

from penstock.errors import NotFound, TableNotFound
from penstock.sdk.connection.names import Name
from penstock.sdk.lake import Lake
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.iceberg_views import IcebergView


def get_any(lake: Lake, name: Name) -> Table | IcebergView | IcebergTable:
    """What this name stands for, whether its rows can be read here or not."""
    try:
        return get_readable(lake, name)
    except TableNotFound as error:
        try:
            return lake.iceberg_table(name)
        except NotFound:
            raise error from None


def get_readable(lake: Lake, name: Name) -> Table | IcebergView:
    """The table, materialized view or Iceberg view of this name."""
    try:
        return lake.table(name)
    except TableNotFound as error:
        try:
            return lake.iceberg_view(name)
        except NotFound:
            raise error from None
