"""Sessions for the SQL of views: settings that affect a query's meaning are always the same.

A runner's own session is for tasks in Python; each query gets another one beside it, with tables
that no other query sees.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from penstock.jobs.spark.tasks import Engine

# A view must be the same at every refresh, whatever a cluster's conf says.
MEANING = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    # Without it Spark has columns of times, and does nothing with them.
    "spark.sql.timeType.enabled": "true",
}
# The parser must read a text as it was checked; a name is never a file.
LOCKED = {
    "spark.sql.runSQLOnFiles": "false",
    # Otherwise Spark would substitute its conf and the environment: ${env:HOME}.
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.legacy.setopsPrecedence.enabled": "false",
}
# For a session that the runner starts itself: no metastore, and an empty catalog.
CATALOG = {
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.defaultCatalog": "spark_catalog",
    "spark.sql.catalog.spark_catalog.defaultDatabase": "default",
}
ARROW = {"spark.sql.execution.arrow.maxRecordsPerBatch": "65536"}
# Code generation and adaptive stages only where they save more time than they take.
LARGE_ROWS = 200_000
ROWS_OF_PARTITION = 1_000_000


@contextmanager
def open_sql(engine: Engine, rows: int) -> Iterator[Engine]:
    """The engine with a session for a query that reads so many rows."""
    spark: Any = engine.spark.newSession()
    try:
        is_large = rows > LARGE_ROWS
        partitions = max(engine.slots, -(-rows // ROWS_OF_PARTITION))
        speed = {
            "spark.sql.codegen.wholeStage": str(is_large).lower(),
            "spark.sql.adaptive.enabled": str(is_large).lower(),
            "spark.sql.shuffle.partitions": str(partitions),
        }
        values = {**MEANING, **LOCKED, **ARROW, **speed}
        if engine.is_connect:
            # One request instead of one for each.
            spark.conf._set_all(values, silent=False)
        else:
            for key, value in values.items():
                spark.conf.set(key, value)
        yield replace(engine, spark=spark)
    finally:
        # A classic session is part of the runner's, and ending it would end that too.
        if engine.is_connect:
            spark.stop()
