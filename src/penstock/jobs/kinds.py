"""The kinds of jobs, a row each: how one is run, and how what it leaves is swept."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.jobs.backfill.run import leave_backfill, run_backfill, sweep_backfill
from penstock.jobs.preview.run import run_preview, sweep_preview
from penstock.jobs.refresh.cascade import run_refreshes, sweep_refreshes
from penstock.lance.session.remote import RemoteCatalog
from penstock.model.jobs import BACKFILL, PREVIEW, REFRESH

Sweep = Callable[[Mapping[str, Any], RemoteCatalog, str, int], int]


@dataclass(frozen=True, slots=True)
class JobKind:
    """One kind of job, for a runner; `catalog/jobs/kinds.py` has its row for the server."""

    run: Callable[..., msgspec.Struct]
    # Removes what a job that succeeded has left; returns how many files.
    sweep: Sweep
    # The same when it did not succeed, where the next one can use what it finished.
    leave: Sweep | None = None


KINDS = {
    BACKFILL: JobKind(run_backfill, sweep_backfill, leave_backfill),
    PREVIEW: JobKind(run_preview, sweep_preview),
    REFRESH: JobKind(run_refreshes, sweep_refreshes),
}
