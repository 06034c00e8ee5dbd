"""The recipe of an analysis: let Spark type a query over empty tables. No rows are read."""

from collections.abc import Callable

from msgspec import Struct

from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.spark.arrow_types import to_arrow_schema
from penstock.jobs.spark.gate.checked_queries import query
from penstock.jobs.spark.lance_source import load_empty
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import AnalysisSpec, Recipe
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.moments import SAMPLE, at_moment


class AnalysisResult(Struct, frozen=True):
    """Base64 of an Arrow schema with the query's outputs."""

    schema: str


def run_analysis(
    spec: AnalysisSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: Attempt,
) -> AnalysisResult:
    """Analyze the query, which passes the gate on the way."""
    engine = get_engine()
    attempt.check()
    with open_sql(engine, 0) as sql:
        frames = {
            name: load_empty(sql, decode_schema(schema)) for name, schema in spec.schemas.items()
        }
        found = query(sql, at_moment(spec.sql, SAMPLE), frames)
        return AnalysisResult(encode_schema(to_arrow_schema(found.schema)))


def sweep_analysis(spec: AnalysisSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Nothing was written."""
    return 0


RECIPE = Recipe(run_analysis, sweep_analysis)
