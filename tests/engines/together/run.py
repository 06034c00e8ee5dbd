"""Spark, Trino and pyiceberg at once, on one server: each writes what the others read."""

from collections.abc import Iterator

from tests.engines.checks import carry_out
from tests.engines.place import Place
from tests.engines.pyiceberg import run as pyiceberg
from tests.engines.pyiceberg.catalog import connect
from tests.engines.results import Result
from tests.engines.spark import run as spark
from tests.engines.together.operations import list_operations
from tests.engines.together.parties import Pyiceberg, Sql
from tests.engines.trino import run as trino
from tests.engines.trino.server import open_trino


def run(place: Place) -> Iterator[Result]:
    with spark.open_spark(place) as session, open_trino(place) as server:
        catalog = connect(place)
        try:
            catalog.create_namespace("shop")
            yield from carry_out(
                list_operations(
                    Sql("spark", session, "shop"),
                    Sql("trino", server, "lake.shop"),
                    Pyiceberg("pyiceberg", catalog),
                )
            )
        finally:
            catalog.close()


def versions(place: Place) -> dict[str, str]:
    return {
        **spark.versions(place),
        **trino.versions(place),
        **pyiceberg.versions(place),
    }
