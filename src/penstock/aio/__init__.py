"""The SDK for programs that await: `lake = await penstock.aio.connect()`."""

from penstock.aio.connect import connect
from penstock.aio.generated.iceberg_table import AsyncIcebergTable
from penstock.aio.generated.iceberg_view import AsyncIcebergView
from penstock.aio.generated.job import AsyncJob
from penstock.aio.generated.lake import AsyncLake
from penstock.aio.generated.query import AsyncQuery
from penstock.aio.generated.registered_function import AsyncRegisteredFunction
from penstock.aio.generated.table import AsyncTable
from penstock.aio.generated.view import AsyncView

__all__ = [
    "AsyncIcebergTable",
    "AsyncIcebergView",
    "AsyncJob",
    "AsyncLake",
    "AsyncQuery",
    "AsyncRegisteredFunction",
    "AsyncTable",
    "AsyncView",
    "connect",
]
