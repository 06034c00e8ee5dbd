"""Check what clients commit to materialized views: only a refresh may change rows.

Clients may add indexes and columns of their own, and compact files, as in any table.
"""

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.versions.staging import StagedManifest
from penstock.errors import InvalidTableState
from penstock.jobs.specs import REFRESH, decode_reach
from penstock.lance.commit.manifest import (
    BadManifest,
    TransactionFile,
    find_transaction_file,
    parse_transaction,
)
from penstock.lance.commit.replacement import ATTEMPT_PROPERTY, BASE_PROPERTY, JOB_PROPERTY
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.jobs import RUNNING
from penstock.model.origins import Origin
from penstock.model.tables import Table


async def check(
    catalog: Catalog, table: Table, branch: str, staged: StagedManifest, origin: Origin
) -> None:
    """Refuse a version of a view that changes rows, unless a running refresh made it."""
    if staged.content is None:
        return  # a repetition of a commit that was checked
    place = catalog.lake.place(table.location)
    made = await catalog.lake.run(_read, place, branch, staged.content)
    if made is not None and not made.row_operation:
        return
    if made is not None and await _is_refresh(catalog, table, made.properties, origin):
        _check_base(table, staged.version.version, made.properties)
        return
    what = "rows" if made is None else f"rows ({made.row_operation})"
    raise InvalidTableState(
        f"{table} is a materialized view: only its refresh writes {what}",
        detail="change the tables that it reads, then refresh it",
    )


async def _is_refresh(
    catalog: Catalog, table: Table, properties: dict[str, str], origin: Origin
) -> bool:
    """Whether a commit names the attempt that is refreshing the view, and comes from its runner."""
    job = await jobs.find(catalog.database, properties.get(JOB_PROPERTY, ""))
    if job is not None and origin.principal:
        holder = await jobs.find_holder(catalog.database, job.id)
        if not origin.runner_key or origin.runner_key != holder:
            return False
    return (
        job is not None
        and (job.kind, job.state) == (REFRESH, RUNNING)
        and table.id in decode_reach(job.spec).target_ids
        and properties.get(ATTEMPT_PROPERTY) == str(job.attempt)
    )


def _check_base(table: Table, version: int, properties: dict[str, str]) -> None:
    """Refuse a refresh that was made for another version than the newest."""
    base = properties.get(BASE_PROPERTY)
    if base is not None and base != str(version - 1):
        raise InvalidTableState(
            f"this refresh of {table} was made for version {base}, and {version - 1} is the newest",
            detail="look at what was committed since, and commit again",
        )


def _read(place: Place, branch: str, content: bytes) -> TransactionFile | None:
    name = find_transaction_file(content)
    folder = f"tree/{branch}/_transactions" if branch else "_transactions"
    try:
        return parse_transaction(files.read(place, f"{folder}/{name}")) if name else None
    except (FileNotFoundError, BadManifest):
        return None
