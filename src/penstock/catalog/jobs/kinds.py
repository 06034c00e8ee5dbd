"""What the server does for each kind of job: completes its spec at a lease, records its success."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.catalog.columns import backfills, previews
from penstock.catalog.materialized_views import pending_alterations, refreshes
from penstock.catalog.statements import analyses, statements
from penstock.database.interface import Transaction
from penstock.jobs.specs import ANALYSIS, BACKFILL, PREVIEW, REFRESH, STATEMENT, JobSpec


@dataclass(frozen=True, slots=True)
class JobHandler:
    """The server's part of one kind of job; `jobs/specs.py` has its row."""

    # Fills in what is true now; None and a reason when there is nothing to work on.
    complete: Callable[[Transaction, Any, str], Awaitable[tuple[JobSpec | None, str]]]
    # Records a success, in the transaction that ends the job.
    record: Callable[[Transaction, Any, Mapping[str, Any]], Awaitable[None]]
    # Says of a job why its commit would be refused, whoever tries it; empty when nothing is known.
    find_obstacle: Callable[[Transaction, str], Awaitable[str]]


async def _record_nothing(tx: Transaction, spec: JobSpec, result: Mapping[str, Any]) -> None:
    """For jobs that write nothing."""


async def _find_none(tx: Transaction, id: str) -> str:
    """For jobs whose commits nothing but other commits can hinder."""
    return ""


KINDS = {
    ANALYSIS: JobHandler(analyses.complete, _record_nothing, _find_none),
    BACKFILL: JobHandler(backfills.complete, backfills.record_watermark, _find_none),
    STATEMENT: JobHandler(statements.complete, _record_nothing, _find_none),
    PREVIEW: JobHandler(previews.complete, _record_nothing, _find_none),
    REFRESH: JobHandler(
        refreshes.complete, refreshes.record_refresh, pending_alterations.find_obstacle
    ),
}
