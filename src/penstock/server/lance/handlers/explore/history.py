"""What the versions of a table did, and how two of them differ."""

from typing import Annotated

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.jobs import jobs
from penstock.catalog.names import tables
from penstock.lance.doors import version_history
from penstock.lance.errors import translated
from penstock.lance.storage.data_threads import Deadline
from penstock.model.branches import check_branch
from penstock.model.paging import request_page
from penstock.model.tables import MAIN
from penstock.server.lance.call import Body, Call, Version
from penstock.server.lance.handlers.versions import find_page

# Each version is a file to open.
MAX_STEPS, STEPS = 100, 25


class ListHistory(Body):
    branch: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    page_token: str | None = None


class CompareVersions(Body):
    # The earlier one, and the later one.
    then: Version = msgspec.field(name="from")
    now: Version = msgspec.field(name="to")
    branch: str | None = None


class ShownStep(msgspec.Struct, omit_defaults=True):
    version: int
    at: int
    operation: str
    rows: int | None = None
    job_id: str | None = None
    job_type: str | None = None


class History(msgspec.Struct, omit_defaults=True):
    versions: list[ShownStep]
    page_token: str | None = None


_list = msgspec.json.Decoder(ListHistory)
_compare = msgspec.json.Decoder(CompareVersions)


async def list_history(call: Call) -> History:
    """What each version did, the newest first."""
    body, catalog = call.decode(_list), call.catalog
    branch = check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    limit = min(body.limit or STEPS, MAX_STEPS)
    page = request_page(f"history:{table.id}:{branch}", body.page_token, limit, call.max_page)
    found = await find_page(catalog, table, branch, page, descending=True)
    if not found.items:
        return History([])
    versions = [each.version for each in found.items]
    steps = await datasets.read(
        catalog,
        table,
        branch,
        versions[0],
        lambda dataset: version_history.read_steps(dataset, versions),
        deadline=Deadline(catalog.query_seconds),
    )
    makers = await jobs.find_makers(catalog.database, table.id) if branch == MAIN else {}
    shown = [
        ShownStep(
            step.version,
            each.timestamp_millis,
            step.operation,
            step.rows,
            *makers.get(step.version, (None, None)),
        )
        for step, each in zip(steps, found.items, strict=True)
    ]
    return History(shown, found.token)


async def compare(call: Call) -> "version_history.VersionChange":
    """What the later of two versions has that the earlier one had not."""
    body, catalog = call.decode(_compare), call.catalog
    branch = check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    then = await datasets.read(catalog, table, branch, body.then, lambda dataset: dataset)
    now = await datasets.read(catalog, table, branch, body.now, lambda dataset: dataset)

    def work() -> "version_history.VersionChange":
        with translated():
            return version_history.compare_versions(now, then)

    return await catalog.workers.run_until(Deadline(catalog.query_seconds), work)
