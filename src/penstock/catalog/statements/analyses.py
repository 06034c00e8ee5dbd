"""Ask a runner for the types of a query: jobs whose caller waits, and that read no rows."""

from typing import TYPE_CHECKING

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.waiting import run_now
from penstock.database.interface import Transaction
from penstock.errors import InvalidRequest, TypesUnknown
from penstock.jobs.specs import ANALYSIS, AnalysisSpec
from penstock.model.jobs import SUCCEEDED, NewJob
from penstock.model.slots import slot_of_statement

if TYPE_CHECKING:
    from penstock.sql.definitions.untyped import UntypedQuery

# Long enough for a runner that is just starting its Spark session.
WAIT_SECONDS = 60.0


async def find_types(
    catalog: Catalog, untyped: "UntypedQuery", unknown: TypesUnknown, cluster: str | None = None
) -> str:
    """Spark's schema of the query's outputs, as base64 of an Arrow schema.

    Raises the error that says what is not known when no runner answers in time, and
    InvalidRequest when Spark refuses the query.
    """
    spec = AnalysisSpec(sql=untyped.sql, schemas=dict(untyped.schemas))
    new = NewJob(
        kind=ANALYSIS,
        object="",
        target="the types of a query",
        slot=slot_of_statement(),
        spec=spec,
        cluster=catalog.queue.check_cluster(cluster),
    )
    # One attempt: the caller waits for it and can ask again.
    id = await catalog.database.write(jobs.enqueue_in, new, 1)
    catalog.queue.ring()
    job = await run_now(catalog, id, WAIT_SECONDS)
    if job.state == SUCCEEDED:
        return str(job.result.get("schema", ""))
    if job.attempt and job.error and not job.retryable:
        raise _refuse(job.error, untyped)
    why = f"; the runner says: {job.error}" if job.error else ""
    raise TypesUnknown(
        unknown.message,
        detail=f"start a runner, which finds it out{why}; or {unknown.detail}",
    )


async def complete(
    tx: Transaction, spec: AnalysisSpec, target: str
) -> tuple[AnalysisSpec | None, str]:
    """The spec of an analysis has all that is needed."""
    return spec, ""


def _refuse(told: str, untyped: "UntypedQuery") -> InvalidRequest:
    """Spark's refusal, with the names that the author gave to tables."""
    for name, identifier in untyped.names.items():
        told = told.replace(name, ".".join(identifier))
    message, _, remedy = told.partition("; ")
    return InvalidRequest(f"source_query: {message}", detail=remedy or "correct the SQL")
