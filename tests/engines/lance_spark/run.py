"""Lance's connector for Spark, against the Lance protocol."""

from collections.abc import Iterator
from pathlib import Path

from tests.engines.cache import join
from tests.engines.checks import carry_out
from tests.engines.lance_spark.operations import list_operations
from tests.engines.place import Place
from tests.engines.results import Result
from tests.engines.spark.session import CATALOG, spark_session

POM = Path(__file__).with_name("pom.xml")
PYSPARK = "pyspark==3.5.9"


def run(place: Place) -> Iterator[Result]:
    catalog = f"spark.sql.catalog.{CATALOG}"
    conf = {
        # Before Spark's own: the connector is built for newer releases of Arrow, Guava and Netty.
        "spark.driver.extraClassPath": join(place.cache.class_path(POM)),
        "spark.sql.extensions": "org.lance.spark.extensions.LanceSparkSessionExtensions",
        catalog: "org.lance.spark.LanceNamespaceSparkCatalog",
        f"{catalog}.impl": "rest",
        f"{catalog}.uri": place.url,
    }
    python = place.cache.python("lance_spark", PYSPARK)
    with spark_session(python, conf, place.log) as spark:
        yield from carry_out(each.check(spark) for each in list_operations())


def versions(place: Place) -> dict[str, str]:
    jars = {each.parents[1].name: each.parent.name for each in place.cache.class_path(POM)}
    named = [name for name in jars if name.startswith(("lance-spark-3", "lance-core"))]
    return {"pyspark": PYSPARK.partition("==")[2], **{name: jars[name] for name in named}}
