"""Penstock: a catalog server for Lance and Iceberg tables, and a data pipeline for Lance.

The names of the SDK are loaded when they are first used, so that importing the package costs
nothing to the server and the command line.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import aio, errors
    from penstock.sdk.connection.connect import connect
    from penstock.sdk.functions.declared import Chunker, Udf, Udtf
    from penstock.sdk.functions.decorators import chunker, udf, udtf
    from penstock.sdk.functions.registered import RegisteredFunction
    from penstock.sdk.functions.types import vector
    from penstock.sdk.jobs.job import Job
    from penstock.sdk.jobs.plans import Plan
    from penstock.sdk.lake import Lake
    from penstock.sdk.sql_result import SqlResult
    from penstock.sdk.tables.iceberg_table import IcebergTable
    from penstock.sdk.tables.query import Query
    from penstock.sdk.tables.table import Table
    from penstock.sdk.views.iceberg_views import IcebergView
    from penstock.sdk.views.view import View

    __version__: str

_HOMES = {
    "connect": "connection.connect",
    "Chunker": "functions.declared",
    "Udf": "functions.declared",
    "Udtf": "functions.declared",
    "chunker": "functions.decorators",
    "udf": "functions.decorators",
    "udtf": "functions.decorators",
    "IcebergTable": "tables.iceberg_table",
    "IcebergView": "views.iceberg_views",
    "Job": "jobs.job",
    "Lake": "lake",
    "Plan": "jobs.plans",
    "Query": "tables.query",
    "RegisteredFunction": "functions.registered",
    "SqlResult": "sql_result",
    "Table": "tables.table",
    "vector": "functions.types",
    "View": "views.view",
}

__all__ = [
    "Chunker",
    "IcebergTable",
    "IcebergView",
    "Job",
    "Lake",
    "Plan",
    "Query",
    "RegisteredFunction",
    "SqlResult",
    "Table",
    "Udf",
    "Udtf",
    "View",
    "__version__",
    "aio",
    "chunker",
    "connect",
    "errors",
    "udf",
    "udtf",
    "vector",
]


if not TYPE_CHECKING:  # type checkers would accept any name here

    def __getattr__(name: str) -> Any:
        if name in ("aio", "errors"):
            return import_module(f"penstock.{name}")
        if name == "__version__":
            return import_module("importlib.metadata").version("penstock")
        if name not in _HOMES:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        found = getattr(import_module(f"penstock.sdk.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
