"""Check that a cluster's Python workers can do our work, before the first job."""

import time
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from penstock.errors import Unavailable, Unsupported
from penstock.jobs.spark.doors import functions
from penstock.jobs.spark.gate.checked_queries import query
from penstock.jobs.spark.lance_source import load_empty
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, Tasks

SCHEMA = "version string"
# Long enough for each task to get a worker of its own, which is then warm.
PROBE_SECONDS = 0.3
MOST_SLOTS = 1024


def count_slots(spark: Any) -> int:
    """How many tasks a cluster runs at once; over Connect, only a query can tell."""
    numbers = spark.range(MOST_SLOTS)
    found: int = numbers.select(functions.spark_partition_id()).distinct().count()
    return max(1, found)


def warm_up(engine: Engine, cluster: str) -> None:
    """Start the workers and load what they need; refuses a cluster without our release."""
    try:
        rows = Tasks(engine, _probe, engine.slots, SCHEMA).result()
    except Unavailable as error:
        if "No module named" not in error.message and "ModuleNotFoundError" not in error.message:
            raise
        raise _not_installed(cluster, error.message) from error
    ours = version("penstock")
    for row in rows:
        if row.version != ours:
            raise _not_installed(cluster, f"it has {row.version}, and this runner is {ours}")


def warm_sql(engine: Engine) -> None:
    """Run a small query as statements are run, so that the first one finds Spark's SQL loaded."""
    with open_sql(engine, 0) as sql:
        frames = {"source_1": load_empty(sql, pa.schema([("a", pa.int64())]))}
        text = "SELECT a, count(*) AS n FROM `source_1` WHERE a > 0 GROUP BY a ORDER BY n"
        query(sql, text, frames).mapInArrow(_pass_on, "a bigint, n bigint").toArrow()


def _pass_on(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    return batches


def _probe(numbers: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    for batch in numbers:
        time.sleep(PROBE_SECONDS)
        yield pa.record_batch([[version("penstock")] * batch.num_rows], ["version"])


def _not_installed(cluster: str, why: str) -> Unsupported:
    return Unsupported(
        f"the Python workers of cluster {cluster!r} cannot work for penstock: {why}",
        detail=f"install penstock[runner]=={version('penstock')} into their Python, and set "
        "spark.pyspark.python in the cluster's conf to it",
    )
