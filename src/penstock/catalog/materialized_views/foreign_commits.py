"""Check what clients commit to materialized views: only a refresh may change rows.

Clients may add indexes and columns of their own, and compact files, as in any table.
"""

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs
from penstock.catalog.materialized_views.pending_alterations import AlteringCommit
from penstock.catalog.versions.staging import StagedManifest
from penstock.errors import InvalidTableState
from penstock.jobs.specs import REFRESH, decode_reach
from penstock.lance.commit.manifest import (
    BadManifest,
    TransactionFile,
    find_transaction_file,
    parse_transaction,
)
from penstock.lance.commit.replacement import (
    ALTERATION_PROPERTY,
    ATTEMPT_PROPERTY,
    BASE_PROPERTY,
    JOB_PROPERTY,
    WATERMARK_PROPERTY,
)
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.jobs import RUNNING
from penstock.model.origins import Origin
from penstock.model.tables import Table
from penstock.model.views import Watermark


async def check(
    catalog: Catalog, table: Table, branch: str, staged: StagedManifest, origin: Origin
) -> AlteringCommit | None:
    """Refuse a version of a view that changes rows, unless a running refresh made it.

    Returns what one says of itself that also alters the view.
    """
    if staged.content is None:
        return None  # a repetition of a commit that was checked
    place = catalog.lake.place(table.location)
    made = await catalog.lake.run(_read, place, branch, staged.content)
    alters = made is not None and ALTERATION_PROPERTY in made.properties
    if made is not None and not made.row_operation and not alters:
        return None
    if made is not None and await _is_refresh(catalog, table, made.properties, origin):
        _check_base(table, staged.version.version, made.properties)
        return _read_alteration(made.properties) if alters else None
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


def _read_alteration(properties: dict[str, str]) -> AlteringCommit:
    try:
        text = properties.get(WATERMARK_PROPERTY, "")
        watermark = msgspec.json.decode(text, type=Watermark)
    except msgspec.MsgspecError as error:
        raise InvalidTableState(
            f"the commit says that it alters the view, and its watermark cannot be read: {error}",
            detail="request the alteration again",
        ) from error
    return AlteringCommit(properties[JOB_PROPERTY], properties[ALTERATION_PROPERTY], watermark)


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
