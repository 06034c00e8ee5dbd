"""Queries by plain Spark, from Parquet to Parquet, in a session of its own."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.runner.java import find_java, point_spark_at


class PlainSpark:
    """A session on two cores with tables of Parquet files; started when it is entered."""

    def __init__(self, folder: Path, tables: Mapping[str, pa.Table]) -> None:
        self._folder = folder
        self._tables = tables

    def __enter__(self) -> Self:
        from pyspark.sql import SparkSession

        point_spark_at(find_java(os.environ), self._folder, os.environ)
        builder: Any = SparkSession.builder
        self._spark: Any = (
            builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )
        for name, data in self._tables.items():
            place = self._folder / name
            place.mkdir(parents=True)
            half = -(-len(data) // 2)
            for number in (0, 1):
                pq.write_table(data.slice(number * half, half), place / f"{number}.parquet")
            self._spark.read.parquet(str(place)).createOrReplaceTempView(name)
        return self

    def __exit__(self, *_: object) -> None:
        self._spark.stop()

    def write(self, query: str) -> None:
        """Compute a query, and write what it gives."""
        self._spark.sql(query).write.mode("overwrite").parquet(str(self._folder / "result"))

    def count(self, query: str) -> int:
        return int(self._spark.sql(query).count())
