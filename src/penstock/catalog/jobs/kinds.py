"""The kinds of jobs, a row each: what completes its spec at a lease, and what its end records."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.catalog.columns import backfills, previews
from penstock.catalog.materialized_views import refreshes
from penstock.database.interface import Transaction
from penstock.model.jobs import BACKFILL, PREVIEW, REFRESH, Job

Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job, for the server; `jobs/kinds.py` has its row for runners."""

    # The spec with what is true now; None, and why, when there is nothing to work on.
    complete: Callable[[Transaction, Job], Awaitable[tuple[Spec | None, str]]]
    # What a success changes, in the transaction that ends the job.
    record: Callable[[Transaction, Mapping[str, Any], Mapping[str, Any]], Awaitable[None]]


async def _record_nothing(
    tx: Transaction, spec: Mapping[str, Any], result: Mapping[str, Any]
) -> None:
    """Of a job that writes nothing."""


KINDS = {
    BACKFILL: JobKind(backfills.complete, backfills.record_watermark),
    PREVIEW: JobKind(previews.complete, _record_nothing),
    REFRESH: JobKind(refreshes.complete, refreshes.record_refresh),
}
