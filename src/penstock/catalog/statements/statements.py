"""Statements: SQL over tables and views that is run once, for whoever asks.

What Lance can answer alone is answered by the server; everything else is a job for a runner's
Spark, whose caller waits for it.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.waiting import explain_absence, has_runner, run_now
from penstock.catalog.names import tables
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.statements.lookup import (
    Lookup,
    find_near,
    look_up,
    open_source,
)
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, TimedOut, TooManyRequests, Unavailable
from penstock.jobs.specs import STATEMENT, StatementSpec
from penstock.lance.errors import translated
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.jobs import SUCCEEDED, Job, NewJob
from penstock.model.slots import slot_of_statement
from penstock.sql.doors import queries, requests
from penstock.sql.doors import statements as statements_door
from penstock.sql.statements import Statement

if TYPE_CHECKING:
    from penstock.sql.definitions.statements import LanceCount, LanceStatement

# More would only keep backfills and refreshes that come later from their turn.
MAX_WAITING = 32
# What a statement is called where a view is read in the same way.
WORDS = {"the SQL of source_query": "the SQL", "source_query": "sql", "a view": "a statement"}


@dataclass(frozen=True, slots=True)
class StatementRequest:
    """A statement, and how much its answer may be."""

    sql: str
    namespace: Identifier
    seconds: float
    max_rows: int
    max_bytes: int
    dialect: str | None = None
    limit: int | None = None
    cluster: str | None = None
    # All rows of this Iceberg view, in place of `sql`.
    view: Identifier | None = None


@dataclass(frozen=True, slots=True)
class ReadStatement:
    """A statement for Lance or Spark, and the ids of the tables and Iceberg views in it."""

    found: "LanceStatement | LanceCount | Statement"
    ids: frozenset[str]


async def read(
    catalog: Catalog, asked: StatementRequest, grantees: tuple[str, ...]
) -> ReadStatement:
    """Read a statement against the tables as they are; what may not be read counts as missing."""
    found = Lookup(reading_as(catalog.database, grantees))
    try:
        query = await catalog.workers.run(_parse, asked)
        query = await look_up(catalog, query, found)
        ids = {name: id for name, id in found.ids.items() if id not in found.editions}
        opened = {name: await open_source(catalog, id, None) for name, id in ids.items()}

        def define() -> "LanceStatement | LanceCount | Statement":
            with translated():
                return statements_door.read_statement(query, opened, time.time_ns() // 1000)

        read = await catalog.workers.run(define)
        return ReadStatement(read, frozenset(found.ids.values()))
    except InvalidRequest as error:
        lost = found.missing[:1]
        near = await find_near(catalog, lost[0], found.may_read) if lost else ""
        raise _reword(error, asked.sql, near) from error


def _parse(asked: StatementRequest) -> "requests.Query":
    if asked.view is not None:
        return queries.read_name(asked.view)
    return queries.read_sql(asked.sql, asked.dialect, asked.namespace)


async def run_on_spark(
    catalog: Catalog,
    asked: StatementRequest,
    statement: Statement,
    leaving: "asyncio.Task[None]",
) -> Job | None:
    """Have a runner run a statement; returns the job once its result is there.

    None when the caller left. The job ends with the waiting, in time or not.
    """
    spec = StatementSpec(
        statement=statement,
        limit=asked.limit,
        max_rows=asked.max_rows,
        max_bytes=asked.max_bytes,
        source_ids=tuple(sorted({source.id for source in statement.sources})),
    )
    new = NewJob(
        kind=STATEMENT,
        object="",
        target=", ".join(dict.fromkeys(show(source.table) for source in statement.sources)),
        slot=slot_of_statement(),
        spec=spec,
        cluster=catalog.queue.check_cluster(asked.cluster),
    )
    # One attempt: the caller waits for it and can ask again.
    id = await catalog.database.write(_enqueue, new)
    catalog.queue.ring()
    job = await run_now(catalog, id, asked.seconds, leaving)
    if job.state == SUCCEEDED:
        return job
    if leaving.done():
        return None
    raise await _explain(catalog, job, asked, statement)


async def _enqueue(tx: Transaction, new: NewJob) -> str:
    """Queue a statement, unless so many wait that it would hardly begin in time."""
    # First, because it locks the queue: nobody else queues one while these are counted.
    id = await jobs.enqueue_in(tx, new, 1)
    row = await tx.fetch_one(
        "SELECT count(*) FROM jobs WHERE state = 'QUEUED' AND kind = $1 AND cluster = $2",
        *(STATEMENT, new.cluster),
    )
    if row is not None and row[0] > MAX_WAITING:
        raise TooManyRequests(
            f"{MAX_WAITING} statements wait for a runner of cluster {new.cluster} already",
            detail="retry after a moment, or start another runner",
        )
    return id


async def check_rights(catalog: Catalog, ids: frozenset[str], grantees: tuple[str, ...]) -> None:
    """Refuse the rows of a statement whose caller may not read all of its sources any more."""
    may_read = reading_as(catalog.database, grantees)
    for id in sorted(ids):
        row = await catalog.database.fetch_one(
            "SELECT namespace, name FROM objects WHERE id = $1", id
        )
        if row is None or not await may_read((*from_path(row[0]), row[1])):
            raise InvalidRequest(
                "sql: a table or view that it reads was dropped, or the right to read it was taken"
                " away, while it ran",
                detail="ask again to see which",
            )


async def complete(
    tx: Transaction, spec: StatementSpec, target: str
) -> tuple[StatementSpec | None, str]:
    """The spec of a statement when it is leased, with the names that its tables have now."""
    sources = []
    for source in spec.statement.sources:
        table = await tables.find_by_id(tx, source.id)
        if table is None:
            return None, f"table {show(source.table)} was dropped meanwhile"
        sources.append(structs.replace(source, table=table.identifier))
    statement = structs.replace(spec.statement, sources=tuple(sources))
    return structs.replace(spec, statement=statement), ""


async def _explain(
    catalog: Catalog, job: Job, asked: StatementRequest, statement: Statement
) -> Exception:
    """Why there is no result."""
    if not job.attempt and not await has_runner(catalog, job.cluster):
        why, remedy = explain_absence(catalog, job.cluster)
        return Unavailable(f"only Spark can run this statement, and {why}", detail=remedy)
    if not job.is_finished or job.cancel_requested:
        return TimedOut(
            f"the statement had no result after {asked.seconds:g} seconds",
            detail="ask for less, or for more time, up to server.sql_seconds",
        )
    if job.retryable:
        return Unavailable(f"the statement failed: {job.error}", detail="ask again in a moment")
    told = job.error
    for source in statement.sources:
        told = told.replace(source.name, ".".join(source.table))
    message, _, remedy = told.partition("; ")
    error = InvalidRequest(f"sql: {message}", detail=remedy or "correct the SQL")
    return _reword(error, asked.sql)


def _reword(error: InvalidRequest, sql: str, near: str = "") -> InvalidRequest:
    """The same error in the words of a statement, which is no view, with names that are near."""

    def reword(text: str) -> str:
        for word, plain in WORDS.items():
            # The author's own words stay as they are.
            text = text if word in sql else text.replace(word, plain)
        return text

    return type(error)(reword(error.message), detail=near or reword(error.detail))
