"""The recipe of a statement: run it once on Spark, and send its rows to the server.

Nothing is written to storage here: the server keeps the result until its caller has it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct

from penstock.errors import InvalidRequest, SchemaMismatch, Unavailable
from penstock.jobs.engine.attempt import COMPUTING, SENDING, Attempt
from penstock.jobs.spark.arrow_types import to_arrow_schema
from penstock.jobs.spark.gate.checked_queries import query
from penstock.jobs.spark.lance_source import load, make_scan
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine, SparkWork
from penstock.jobs.specs import Recipe, StatementSpec
from penstock.jobs.statement.kernel import SCHEMA, EncodeOrder, encode_kernel
from penstock.lance.columns.schemas import decode_schema, encode_schema
from penstock.lance.session.remote import RemoteCatalog, open_planned

POLL_SECONDS = 0.02
# What the end of an Arrow stream looks like.
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class StatementResult(Struct, frozen=True):
    """How much was sent."""

    rows: int
    bytes: int
    seconds: float


class AnsweringAttempt(Attempt, Protocol):
    """An attempt whose rows somebody waits for."""

    def send_result(self, parts: Sequence[Any]) -> None:
        """Send the rows, an Arrow stream in pieces, to the server."""


@dataclass(frozen=True, slots=True)
class _Encoded:
    """The rows as an Arrow stream, in pieces."""

    parts: Sequence[Any]
    rows: int


def run_statement(
    spec: StatementSpec,
    catalog: RemoteCatalog,
    get_engine: Callable[[], Engine],
    attempt: AnsweringAttempt,
) -> StatementResult:
    """Run the statement, and send its rows in the order that Spark gives them."""
    started = time.monotonic()
    engine = get_engine()
    attempt.check()
    attempt.phase(COMPUTING)
    found = _compute(spec, catalog, engine, attempt)
    attempt.check()
    attempt.phase(SENDING)
    attempt.send_result(found.parts)
    size = sum(len(part) for part in found.parts)
    attempt.progress(rows_total=found.rows, rows_done=found.rows)
    return StatementResult(found.rows, size, round(time.monotonic() - started, 6))


def sweep_statement(spec: StatementSpec, catalog: RemoteCatalog, job: str, attempt: int) -> int:
    """Nothing was written here; the server removes what it was sent."""
    return 0


def _compute(
    spec: StatementSpec, catalog: RemoteCatalog, engine: Engine, attempt: Attempt
) -> _Encoded:
    sources = []
    for source in spec.statement.sources:
        location = catalog.locate(source.table, "")
        sources.append((source, location, open_planned(location, source.version, attempt.job)))
    total = sum(dataset.count_rows() for _, _, dataset in sources)
    with open_sql(engine, total) as sql:
        frames = {
            source.name: load(
                sql,
                make_scan(
                    dataset,
                    location,
                    source.reads,
                    attempt.job,
                    engine.slots,
                    where=source.filter,
                ),
            )
            for source, location, dataset in sources
        }
        frame = query(sql, spec.statement.sql, frames)
        if spec.limit is not None:
            frame = frame.limit(min(spec.limit, spec.max_rows + 1))
        wanted = _choose_schema(frame.schema, decode_schema(spec.statement.kept))
        order = EncodeOrder(encode_schema(wanted), spec.max_rows, spec.max_bytes)
        # By place, because two outputs may have one name.
        placed = frame.toDF(*(f"c{place}" for place in range(len(wanted))))
        encoded = placed.mapInArrow(encode_kernel(order), SCHEMA)
        rows = _wait(SparkWork(sql, lambda: encoded.toArrow().to_pylist()), attempt)
    return _join(rows, wanted, spec)


def _choose_schema(given: Any, kept: pa.Schema) -> pa.Schema:
    """Spark's columns, with the types of the tables where a column is just selected."""
    made = to_arrow_schema(given)
    for field in kept:
        if (place := int(field.name)) < len(made):
            made = made.set(place, made.field(place).with_type(field.type))
    return made


def _wait(running: SparkWork, attempt: Attempt) -> list[Any]:
    try:
        while not running.wait(POLL_SECONDS):
            attempt.check()
        return running.result()
    except BaseException as error:
        if not running.wait(0):
            running.end()
        # What is wrong with the SQL may quote any text of its author.
        if isinstance(error, Unavailable) and "spark.driver.maxResultSize" in error.message:
            raise InvalidRequest(
                "the result is larger than Spark collects", detail="select less, or add LIMIT"
            ) from error
        raise


def _join(rows: Sequence[Any], wanted: pa.Schema, spec: StatementSpec) -> _Encoded:
    for row in rows:
        if row["error"] is not None:
            raise SchemaMismatch(row["error"], detail="cast the column in the query")
    count = sum(row["rows"] for row in rows)
    if count > spec.max_rows:
        raise InvalidRequest(
            f"the result has more than {spec.max_rows} rows", detail="add LIMIT, or select less"
        )
    contents = [row["content"] for row in rows if row["content"] is not None]
    size = sum(row["bytes"] for row in rows)
    if size > spec.max_bytes:
        raise InvalidRequest(
            f"the result has more than {spec.max_bytes} bytes", detail="add LIMIT, or select less"
        )
    head = wanted.serialize().to_pybytes()
    return _Encoded([head, *contents, END_OF_STREAM], count)


RECIPE = Recipe(run_statement, sweep_statement)
