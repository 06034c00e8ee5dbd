"""Pages for monitoring: /healthz, /readyz and /metrics."""

import msgspec

from penstock.catalog import health
from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import auto_backfill
from penstock.catalog.health import Readiness
from penstock.catalog.jobs import jobs
from penstock.catalog.materialized_views import auto_refresh
from penstock.catalog.upkeep import policies
from penstock.errors import PenstockError
from penstock.server.metrics import CONTENT_TYPE, Metrics
from penstock.server.transport.http import Reply

PATHS = ("healthz", "readyz", "metrics")


async def answer(
    page: str, catalog: Catalog, metrics: Metrics, readiness: Readiness, *, tells_why: bool = True
) -> Reply:
    """Answer one of PATHS; `tells_why` when anyone may know what is wrong."""
    match page:
        case "healthz":
            return Reply(200, b'{"status":"ok"}')
        case "readyz":
            return await _ready(readiness, tells_why)
        case _:
            return await _metrics(catalog, metrics)


async def _ready(readiness: Readiness, tells_why: bool) -> Reply:
    found = await readiness.find_problems()
    problems = {part: why if tells_why else "unavailable" for part, why in found.items()}
    status = "unavailable" if problems else "ok"
    body = msgspec.json.encode({"status": status, **problems})
    return Reply(503, body, headers=((b"retry-after", b"1"),)) if problems else Reply(200, body)


async def _metrics(catalog: Catalog, metrics: Metrics) -> Reply:
    kind = catalog.database.kind
    try:
        work = await health.count_work(catalog)
        for name, count in work.items():
            metrics.set_work(name, count)
        metrics.set_jobs(await jobs.count_by_state(catalog.database))
        metrics.set_stale(await auto_backfill.count_stale(catalog.database))
        metrics.set_stale_views(await catalog.database.read(auto_refresh.count_stale))
        metrics.set_policies(*await catalog.database.read(policies.count))
        metrics.set_database(kind, up=True)
    except PenstockError:
        metrics.set_database(kind, up=False)
    metrics.set_work("database_writes", catalog.database.pending_writes())
    return Reply(200, metrics.render(), CONTENT_TYPE)
