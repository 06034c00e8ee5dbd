"""Consents: which later additions to its query a materialized view may read.

A view reads with its creator's rights. Others may edit an Iceberg view in its query: either they
can read everything that their SQL reads, or an owner of the materialized view must consent.
`view_sources` records what was consented to: ids of tables, and editions of views. So is a name in
an Iceberg view that comes to stand for something else: it adds that to the query.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views import definitions, materialized_views
from penstock.catalog.materialized_views.materialized_views import MaterializedView
from penstock.catalog.names import dependents, view_sources
from penstock.catalog.names.dependents import KeptVersions
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.names.view_sources import InnerName
from penstock.catalog.statements.lookup import QuerySources
from penstock.database.interface import Transaction
from penstock.errors import ConcurrentCommit, Forbidden, NeedsConsent, NotFound, TableInUse
from penstock.jobs.specs import RefreshSpec
from penstock.model.identifiers import Identifier, from_path, show
from penstock.model.origins import Origin
from penstock.model.rights import READ, TABLE, Need

HOW = (
    "an owner of the view who may read that can consent (POST /v1/materialized_view/{id}/consent, "
    "view.consent(), penstock views consent), or somebody changes the Iceberg view back"
)


@dataclass(frozen=True, slots=True)
class ConsentGap:
    """A source that only the view's creator has a right to read.

    A name without an object may mean one of several.
    """

    needs: tuple[Need, ...]


async def check(
    tx: Transaction, view: MaterializedView, reading: QuerySources, origin: Origin
) -> dict[str, str]:
    """Refuse sources without consent; returns who answers for each new source."""
    gaps, answering = await find_gaps(tx, view.table.id, reading)
    if gaps:
        raise NeedsConsent(
            f"{view.table} needs an owner's consent to read {await tell(tx, gaps, origin)}: "
            "whoever changed what the view is made from may not read that",
            detail=HOW,
        )
    return answering


async def find_gaps(
    tx: Transaction, view_id: str, reading: QuerySources
) -> tuple[list[ConsentGap], dict[str, str]]:
    """Find what needs consent, and who answers for what an Iceberg view has added.

    An Iceberg view adds something when its SQL was edited, or when a name in it has come to stand
    for something else.
    """
    rows = await tx.fetch(
        "SELECT reader, name, source_id, edition FROM view_sources WHERE view_id = $1", view_id
    )
    known: dict[str, str] = {row[2]: row[3] for row in rows}
    gaps: dict[ConsentGap, None] = {}
    answering: dict[str, str] = {}
    for id, edition in reading.editions.items():
        recorded = {row[1]: row[2] for row in rows if row[0] == id}
        if known.get(id) == edition.id and _has_same(reading.inner.get(id, ()), recorded, known):
            continue
        for source in (id, *sorted(reading.below[id])):
            answering.setdefault(source, edition.author)
        wanted = [await _find_need(tx, source) for source in sorted(reading.below[id])]
        wanted += [_any_of(names) for names in reading.missing.get(id, ())]
        for needs in wanted:
            if not await _may(tx, edition.by, needs):
                gaps[ConsentGap(needs)] = None
    # Nobody answers for what the view's own names have come to stand for.
    for source in sorted(set(reading.names.values()) - known.keys()):
        gaps[ConsentGap(await _find_need(tx, source))] = None
    return list(gaps), answering


def _has_same(
    names: Sequence[InnerName], recorded: Mapping[str, str], known: Collection[str]
) -> bool:
    """Whether the names in an Iceberg view stand for what was consented to.

    A new name of something that it read before is that view's, which followed a rename. Where the
    names in it were not recorded, by releases that kept their meaning, what the query read counts.
    """
    before = set(recorded.values()) or known
    return all(recorded.get(n.path, n.source) == n.source and n.source in before for n in names)


async def may_read(tx: Transaction, gap: ConsentGap, origin: Origin) -> bool:
    """Whether the caller may read what needs consent."""
    return await _may(tx, origin.grantees, gap.needs)


async def tell(tx: Transaction, gaps: Sequence[ConsentGap], origin: Origin) -> str:
    """The names of what needs consent, as far as the caller may see them."""
    told = await list_names(tx, gaps, origin)
    if not all([await may_read(tx, gap, origin) for gap in gaps]):
        told.append(f"a source that {origin.principal} may not read")
    return ", ".join(told)


async def list_names(tx: Transaction, gaps: Sequence[ConsentGap], origin: Origin) -> list[str]:
    """The names that the caller may read."""
    return sorted({show(gap.needs[0].id) for gap in gaps if await may_read(tx, gap, origin)})


async def find_needed(catalog: Catalog, view: MaterializedView, origin: Origin) -> list[str] | None:
    """What a view needs consent for, as far as the caller may see it; None when nothing."""
    known = await catalog.database.read(view_sources.get_known, view.table.id)
    may_read = reading_as(catalog.database, view.owner)
    try:
        reading = await definitions.read(
            catalog, view.table.namespace, view.asked, may_read=may_read, known=known
        )
        gaps, _ = await catalog.database.read(find_gaps, view.table.id, reading)
    except (ConcurrentCommit, NotFound):
        # Something was dropped just now; the next request sees the rest.
        return None
    return await catalog.database.read(list_names, gaps, origin) if gaps else None


async def record(
    tx: Transaction, view_id: str, reading: QuerySources, answering: Mapping[str, str]
) -> list[KeptVersions]:
    """Record what a view reads, and who answers for each; returns sources that it stopped reading.

    Refused when an Iceberg view was edited since it was read: that edition has no consent.
    """
    for id, edition in reading.editions.items():
        row = await tx.fetch_one("SELECT edited_in FROM views WHERE id = $1", id)
        if row is None or row[0] != edition.id:
            raise ConcurrentCommit(
                "an Iceberg view that the view reads was changed meanwhile", detail="retry"
            )
    return await dependents.record(tx, view_id, reading.to_record(), answering)


async def find_obstacle(tx: Transaction, spec: RefreshSpec) -> str:
    """Why a queued refresh must not start: the view may no longer read what it reads.

    The definition was made when the refresh was requested; since then grants may have been revoked,
    or the view may have gained sources.
    """
    for each in (*spec.upstream, spec):
        ids = {*each.states, *(source.id for source in each.definition.sources)}
        # An altered view reads with the rights of who alters it, who named all of its sources.
        relation, key = ("materialized_views", "id")
        if each.alteration is not None:
            relation, key = "view_alterations", "view_id"
        row = await tx.fetch_one(f"SELECT owner FROM {relation} WHERE {key} = $1", each.table_id)
        if row is None:
            continue
        rows = await tx.fetch(
            "SELECT source_id FROM view_sources WHERE view_id = $1", each.table_id
        )
        if each.alteration is None and ids - {row[0] for row in rows}:
            return "the view has come to read other sources since; request the refresh again"
        owner = msgspec.json.decode(row[0], type=tuple[str, ...])
        try:
            await materialized_views.check_sources(tx, owner, ids)
        except (Forbidden, TableInUse) as error:
            return error.message
    return ""


async def _find_need(tx: Transaction, id: str) -> tuple[Need, ...]:
    row = await tx.fetch_one("SELECT kind, namespace, name FROM objects WHERE id = $1", id)
    if row is None:
        raise ConcurrentCommit("what the view reads was dropped meanwhile", detail="retry")
    return (Need(READ, row[0], (*from_path(row[1]), row[2])),)


def _any_of(names: Sequence[Identifier]) -> tuple[Need, ...]:
    return tuple(Need(READ, TABLE, name) for name in names)


async def _may(tx: Transaction, grantees: Sequence[str] | None, needs: Sequence[Need]) -> bool:
    """Whether holders of these grants may read one of these; None means unknown holders."""
    if grantees is None:
        return False
    for need in needs:
        if await grants.may_in(tx, grantees, need):
            return True
    return False
