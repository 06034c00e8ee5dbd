"""Every function that Spark has is allowed, or refused for a reason; the allowed ones pass."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import QueryRefused
from penstock.jobs.spark.gate.checked_queries import pick, query
from penstock.jobs.spark.gate.functions import ALLOWED, REFUSED
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, explain

# What these give depends on the moment, when they are called like this.
BY_THE_CLOCK = {"SELECT unix_timestamp()"}


@pytest.fixture(autouse=True)
def classic(engine: Engine) -> None:
    if engine.is_connect:
        pytest.skip("its functions are those of the session beside it")


def list_examples(engine: Engine) -> Iterator[str]:
    """The examples in Spark's own documentation of the functions that are allowed."""
    utils: Any = engine.spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils
    for info in utils.listBuiltinFunctionInfos():
        if info.getName() not in REFUSED:
            shown = info.getExamples().replace("_FUNC_", info.getName())
            yield from re.findall(r"^\s*> (SELECT .*);\s*$", shown, re.MULTILINE | re.IGNORECASE)


def test_each_function_of_spark_is_allowed_or_refused_for_a_reason(engine: Engine) -> None:
    names = {row[0] for row in engine.spark.sql("SHOW FUNCTIONS").collect()}
    words = {name for name in names if re.fullmatch(r"\w+", name)}
    assert len(words) > 500
    assert not words - ALLOWED - REFUSED.keys()
    assert not REFUSED.keys() - words
    assert all(REFUSED.values())


@pytest.mark.slow
def test_no_example_of_an_allowed_function_is_refused(engine: Engine) -> None:
    refused, passed = {}, 0
    with open_sql(engine, 0) as sql:
        for text in set(list_examples(engine)):
            try:
                query(sql, text, {})
                passed += 1
            except QueryRefused as error:
                refused[text] = error.message
            # Examples for another conf, or with a line that the pattern has cut.
            except Exception as error:
                explain(error)
    assert refused.keys() == BY_THE_CLOCK
    assert passed > 1000


def test_a_function_that_a_session_brought_is_not_called(engine: Engine) -> None:
    with open_sql(engine, 0) as sql:
        for name in ("upper", "mine"):
            sql.spark.udf.register(name, lambda text: "mine")
        assert query(sql, "SELECT upper('a')", {}).collect()[0][0] == "A"
        with pytest.raises(QueryRefused, match="mine"):
            query(sql, "SELECT mine('a')", {})


def test_what_runs_is_looked_at_again(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("a secret")
    with open_sql(engine, 0) as sql:
        from pyspark.sql.functions import udf

        numbers = sql.spark.range(1)
        for frame, found in (
            (sql.spark.read.text(str(tmp_path / "secret.txt")), "LogicalRelation"),
            (numbers.select(udf(lambda number: "mine")("id")), "Python function"),
        ):
            with pytest.raises(QueryRefused, match=found):
                pick(sql, frame, "1 AS one")
