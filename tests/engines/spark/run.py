"""Spark with Iceberg's own runtime, against the Iceberg protocol."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.engines.cache import join
from tests.engines.checks import Session, carry_out
from tests.engines.place import Place
from tests.engines.results import Result
from tests.engines.spark import changes, references, tables, upkeep, views
from tests.engines.spark.session import CATALOG, spark_session

POM = Path(__file__).with_name("pom.xml")
# The newest release that the runtime of the pom is built for.
PYSPARK = "pyspark==4.1.4"


def run(place: Place) -> Iterator[Result]:
    with open_spark(place) as spark:
        made = tables.list_operations(place.outside)
        for part in (changes, references, upkeep, views):
            made += part.list_operations()
        yield from carry_out(each.check(spark) for each in made)


def versions(place: Place) -> dict[str, str]:
    [runtime] = place.cache.class_path(POM)
    return {"pyspark": PYSPARK.partition("==")[2], runtime.parents[1].name: runtime.parent.name}


@contextlib.contextmanager
def open_spark(place: Place) -> Iterator[Session]:
    """Spark whose default catalog is the server's."""
    catalog = f"spark.sql.catalog.{CATALOG}"
    conf = {
        "spark.driver.extraClassPath": join(place.cache.class_path(POM)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": place.iceberg,
        # Others write the same tables.
        f"{catalog}.cache-enabled": "false",
    }
    python = place.cache.python("spark", PYSPARK)
    with spark_session(python, conf, place.log) as spark:
        yield spark
