"""The only way for SQL text into Spark: parse, check, analyze, check again, run.

Spark parses the text, the result is checked, and only then are names looked up; the analyzed plan
is checked again, and runs. A Spark Connect session shows its plans to nobody: there the same is
first done on a session of the runner's own, over empty tables with the same columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.jobs.spark.doors import dataframe
from penstock.jobs.spark.gate.reader import parse, read_expressions, read_plan
from penstock.jobs.spark.gate.rules import check_analyzed, check_parsed
from penstock.jobs.spark.tasks import Engine, explain
from penstock.jobs.spark.types import quote

if TYPE_CHECKING:
    import pyarrow as pa


def query(engine: Engine, sql: str, frames: Mapping[str, Any]) -> Any:
    """Run a statement over frames with these names; raises QueryRefused."""
    with _explained():
        if engine.judge is None:
            return _query(engine.spark, sql, frames)
        judge = engine.judge().spark.newSession()
        _query(judge, sql, {name: _empty(judge, frame) for name, frame in frames.items()})
        for name, frame in frames.items():
            frame.createOrReplaceTempView(quote(name))
        return engine.spark.sql(sql)


def pick(
    engine: Engine, frame: Any, *outputs: str, where: str | None = None, name: str | None = None
) -> Any:
    """Expressions over the rows of a frame that match a condition; raises QueryRefused.

    Without outputs the frame keeps its columns; `name` is its name in the expressions.
    """
    with _explained():
        if engine.judge is None:
            return _pick(engine.spark, frame, outputs, where, name)
        judge = engine.judge().spark.newSession()
        _pick(judge, _empty(judge, frame), outputs, where, name)
        return _apply(frame, outputs, where, name)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    # Spark has no common error for a text that it does not understand.
    except Exception as error:
        raise explain(error) from error


def _query(spark: Any, sql: str, frames: Mapping[str, Any]) -> Any:
    plan = parse(spark, sql)
    check_parsed(read_plan(spark, plan), frames)
    for name, frame in frames.items():
        frame.createOrReplaceTempView(quote(name))
    # The very plan that was checked, not the text again.
    datasets = spark._jvm.org.apache.spark.sql.classic.Dataset
    made = dataframe.DataFrame(datasets.ofRows(spark._jsparkSession, plan), spark)
    _check_made(spark, made)
    return made


def _pick(
    spark: Any, frame: Any, outputs: Sequence[str], where: str | None, name: str | None
) -> Any:
    texts = outputs if where is None else (where, *outputs)
    check_parsed(read_expressions(spark, texts), ())
    made = _apply(frame, outputs, where, name)
    _check_made(spark, made)
    return made


def _apply(frame: Any, outputs: Sequence[str], where: str | None, name: str | None) -> Any:
    named = frame if name is None else frame.alias(name)
    taken = named if where is None else named.filter(where)
    return taken.selectExpr(*outputs) if outputs else taken


def _check_made(spark: Any, frame: Any) -> None:
    check_analyzed(read_plan(spark, frame._jdf.queryExecution().analyzed()))


def _empty(spark: Any, frame: Any) -> Any:
    """An empty frame of another session, with the same columns."""
    return spark.range(0).mapInArrow(_nothing, frame.schema)


def _nothing(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
    return batches
