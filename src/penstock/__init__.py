"""Penstock: a catalog server and data pipeline for Lance tables and Iceberg views.

The names of the SDK are loaded when they are first used, so that importing the package costs
nothing to the server and the command line.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock import errors
    from penstock.sdk.connect import connect
    from penstock.sdk.declared import Chunker, Udf, Udtf
    from penstock.sdk.functions import chunker, udf, udtf
    from penstock.sdk.job import Job
    from penstock.sdk.lake import Lake
    from penstock.sdk.plans import Plan
    from penstock.sdk.query import Query
    from penstock.sdk.table import Table
    from penstock.sdk.types import vector
    from penstock.sdk.view import View

_HOMES = {
    "connect": "connect",
    "Chunker": "declared",
    "Udf": "declared",
    "Udtf": "declared",
    "chunker": "functions",
    "udf": "functions",
    "udtf": "functions",
    "Job": "job",
    "Lake": "lake",
    "Plan": "plans",
    "Query": "query",
    "Table": "table",
    "vector": "types",
    "View": "view",
}

__all__ = [
    "Chunker",
    "Job",
    "Lake",
    "Plan",
    "Query",
    "Table",
    "Udf",
    "Udtf",
    "View",
    "chunker",
    "connect",
    "errors",
    "udf",
    "udtf",
    "vector",
]


if not TYPE_CHECKING:  # where every name would do

    def __getattr__(name: str) -> Any:
        from importlib import import_module

        if name == "errors":
            return import_module("penstock.errors")
        if name not in _HOMES:
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        found = getattr(import_module(f"penstock.sdk.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
