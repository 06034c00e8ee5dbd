"""Which versions of a table somebody needs: tags, branches, columns, views, jobs, kept work."""

from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.jobs import UNFINISHED
from penstock.catalog.upkeep.plans import JOB, Needed
from penstock.database.interface import Transaction
from penstock.jobs.doors import origins
from penstock.jobs.specs import Reach, decode_reach
from penstock.lance.storage.lake import Place
from penstock.lance.upkeep import removal
from penstock.model.tables import MAIN, Table

COLUMN, VIEW, KEPT = "column", "view", "kept work"


class _Asked(msgspec.Struct):
    """The versions that a job was asked to read, of its table or of what its view reads."""

    read_version: int | None = None
    src_version: int | None = None


class _Watermark(msgspec.Struct):
    """As much of a column's or a view's watermark as tells the versions that it names."""

    version: int = 0
    branch: str | None = None
    versions: dict[str, int] = {}
    view_version: int = 0


_watermarks = msgspec.json.Decoder(list[_Watermark])
_watermark = msgspec.json.Decoder(_Watermark)
_asked = msgspec.json.Decoder(_Asked)


async def find_needed(catalog: Catalog, table: Table, branch: str) -> Needed:
    """All versions of a branch that are needed now."""
    place = catalog.lake.place(table.location)
    stored = await catalog.lake.run(_find_stored, place, branch)
    known = await catalog.database.read(find_recorded, table, branch)
    return Needed({**stored, **known.versions}, known.jobs_since)


async def find_recorded(tx: Transaction, table: Table, branch: str) -> Needed:
    """Those that the catalog's records tell of."""
    found: dict[int, str] = {}
    for (text,) in await tx.fetch(
        "SELECT watermarks FROM columns WHERE table_id = $1 AND branch = $2 "
        "AND watermarks IS NOT NULL",
        *(table.id, branch),
    ):
        marks = _watermarks.decode(text)
        found |= {each.version: COLUMN for each in marks if (each.branch or branch) == branch}
    if branch == MAIN:
        found |= await _find_of_views(tx, table)
    asked, since = await _find_jobs(tx, table)
    return Needed({**found, **dict.fromkeys(asked, JOB)}, since)


async def _find_of_views(tx: Transaction, table: Table) -> dict[int, str]:
    """The versions that refreshes will compare with: of what a view reads, and of a view itself."""
    rows = await tx.fetch(
        "SELECT id, watermark FROM materialized_views WHERE watermark IS NOT NULL AND (id = $1 "
        "OR id IN (SELECT view_id FROM view_sources WHERE source_id = $1))",
        table.id,
    )
    found: dict[int, str] = {}
    for id, text in rows:
        mark = _watermark.decode(text)
        version = mark.view_version if id == table.id else mark.versions.get(table.id, 0)
        found[version] = VIEW
    return found


async def _find_jobs(tx: Transaction, table: Table) -> tuple[set[int], int | None]:
    """Versions that unfinished jobs were asked to read, and since when any may be one of theirs."""
    rows = await tx.fetch(
        "SELECT j.created_at, j.object_id, j.spec, "
        "EXISTS (SELECT 1 FROM job_slots s WHERE s.job_id = j.id AND s.object_id = $1) "
        f"FROM jobs j WHERE {UNFINISHED}",
        table.id,
    )
    readers = await tx.fetch("SELECT view_id FROM view_sources WHERE source_id = $1", table.id)
    ids = {table.id, *(row[0] for row in readers)}
    near = [
        (created_at, _asked.decode(spec))
        for created_at, object_id, spec, has_slot in rows
        if has_slot or object_id in ids or not ids.isdisjoint(_reached(decode_reach(spec)))
    ]
    asked = {v for _, each in near for v in (each.read_version, each.src_version) if v is not None}
    return asked, min((created_at for created_at, _ in near), default=None)


def _reached(reach: Reach) -> set[str]:
    above: Any = (_reached(each) for each in reach.upstream)
    return {reach.table_id, *reach.source_ids}.union(*above)


def _find_stored(place: Place, branch: str) -> dict[int, str]:
    kept = dict.fromkeys(origins.list_origins(place), KEPT)
    return {**kept, **removal.list_named(place, branch)}
