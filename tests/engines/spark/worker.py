"""Runs in an environment with PySpark and nothing of ours: lines of SQL in, rows in JSON out."""

import datetime
import decimal
import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def main() -> None:
    conf = json.loads(sys.argv[1])
    builder = SparkSession.builder
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line)["sql"])), flush=True)
    spark.stop()


def answer(spark: Any, sql: str) -> dict[str, Any]:
    try:
        return {"rows": [list(map(plain, row)) for row in spark.sql(sql).collect()]}
    # Whatever it is, whoever asked is told.
    except Exception as error:
        return {"error": str(error) or type(error).__name__}


def plain(value: Any) -> Any:
    if isinstance(value, (datetime.date, decimal.Decimal)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


if __name__ == "__main__":
    main()
