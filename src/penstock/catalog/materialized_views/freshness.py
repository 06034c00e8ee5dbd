"""How far a materialized view is behind its tables, directly or through other views.

A view of views is stale while one of those is, and its lag counts from the change of the table at
the bottom. The catalog answers this without opening data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from penstock.catalog.access import grants
from penstock.catalog.materialized_views import materialized_views
from penstock.catalog.materialized_views.materialized_views import MaterializedView, SourceState
from penstock.catalog.names import tables
from penstock.database.interface import Transaction
from penstock.model.identifiers import Identifier
from penstock.model.rights import READ, TABLE, Need
from penstock.model.tables import MAIN
from penstock.model.views import Watermark


@dataclass(frozen=True, slots=True)
class BaseTable:
    """A base table of a view, reached through one of the view's sources."""

    id: str
    identifier: Identifier
    head: int
    # The version that the view is made from, 0 when none; None when unknown.
    followed: int | None
    # The source view through which it is read; None when it is a source itself.
    through: Identifier | None = None

    @property
    def pending(self) -> int:
        """How many versions came since; none if it went back."""
        return 0 if self.followed is None else max(0, self.head - self.followed)


@dataclass(frozen=True, slots=True)
class ViewFreshness:
    """A view, the states of its sources, and its base tables."""

    view: MaterializedView
    sources: tuple[SourceState, ...]
    bases: tuple[BaseTable, ...]
    # Those of its sources that are stale views.
    stale_sources: tuple[Identifier, ...]

    @property
    def is_behind(self) -> bool:
        """Whether a refresh of this view alone might find something to do."""
        return self.reads_clock or materialized_views.is_behind(self.view, self.sources)

    @property
    def reads_clock(self) -> bool:
        """Whether its query reads the clock, so that it is behind as soon as time passes."""
        return self.view.watermark is not None and self.view.watermark.moment is not None

    @property
    def is_stale(self) -> bool:
        """Whether it, or a view that it reads, is behind."""
        return self.is_behind or bool(self.stale_sources)

    def list_pending(self) -> list[BaseTable]:
        return [base for base in self.bases if base.pending]


@dataclass(frozen=True, slots=True)
class Tracer:
    """Computes the freshness of views, each once; `loading` are those being computed."""

    tx: Transaction
    known: dict[str, ViewFreshness] = field(default_factory=dict)
    loading: set[str] = field(default_factory=set)

    async def trace(self, view: MaterializedView) -> ViewFreshness:
        id = view.table.id
        if id not in self.known:
            self.loading.add(id)
            self.known[id] = await self._trace(view)
            self.loading.discard(id)
        return self.known[id]

    async def _trace(self, view: MaterializedView) -> ViewFreshness:
        sources = await materialized_views.list_sources(self.tx, view)
        bases, stale = list[BaseTable](), list[Identifier]()
        versions = {} if view.watermark is None else view.watermark.versions
        for source in sources:
            above = await self._trace_source(source)
            if above is not None:
                bases += _look_through(view, source, above)
                stale += [source.identifier] if above.is_stale else []
            elif source.head is not None:
                followed = versions.get(source.id, 0)
                bases.append(BaseTable(source.id, source.identifier, source.head, followed))
        return ViewFreshness(view, tuple(sources), tuple(bases), tuple(stale))

    async def _trace_source(self, source: SourceState) -> ViewFreshness | None:
        """The freshness of a source that is a view; follows a circle only once."""
        if not source.is_view or source.id in self.loading:
            return None
        table = await tables.find_by_id(self.tx, source.id)
        if table is None:
            return None
        return await self.trace(await materialized_views.load(self.tx, table))


async def find_lag_millis(tx: Transaction, standing: ViewFreshness) -> int | None:
    """Milliseconds since the first base-table change that the view misses; None without any.

    When no base table has one, the change of the view's own source counts. A view whose query reads
    the clock misses what happened since its moment.
    """
    versions = {} if standing.view.watermark is None else standing.view.watermark.versions
    since = [(base.id, base.followed or 0) for base in standing.list_pending()] or [
        (source.id, versions.get(source.id, 0))
        for source in standing.sources
        if source.head is not None and source.is_ahead is not False
    ]
    times = list[int]()
    watermark = standing.view.watermark
    if watermark is not None and watermark.moment is not None:
        clock = await tx.fetch_one("SELECT now_millis()")
        assert clock is not None
        times.append(max(0, clock[0] - watermark.moment // 1000))
    for id, version in since:
        row = await tx.fetch_one(
            "SELECT min(timestamp_millis), now_millis() FROM table_versions "
            "WHERE table_id = $1 AND branch = $2 AND version > $3",
            *(id, MAIN, version),
        )
        if row is not None and row[0] is not None:
            # A view was not behind before it existed.
            times.append(row[1] - max(row[0], standing.view.created_at))
    return max(0, *times) if times else None


async def find_bases(tx: Transaction, watermark: Watermark) -> dict[str, int]:
    """The base-table versions that a view is made from through other views, as these are now.

    A source that was refreshed after the view read it says nothing about that any more.
    """
    found: dict[str, int] = {}
    for id, version in watermark.versions.items():
        row = await tx.fetch_one("SELECT watermark FROM materialized_views WHERE id = $1", id)
        if row is None or row[0] is None:
            continue
        above = msgspec.json.decode(row[0], type=Watermark)
        if above.view_version <= version:
            views = await _list_views(tx, above.versions)
            direct = {each: n for each, n in above.versions.items() if each not in views}
            for base, followed in (*direct.items(), *above.bases.items()):
                found[base] = min(followed, found.get(base, followed))
    return found


async def keep_seen(
    tx: Transaction, bases: Sequence[BaseTable], grantees: Sequence[str]
) -> list[BaseTable]:
    """The tables that a caller may know of: a view's own sources, and what it may read itself."""
    seen = []
    for base in bases:
        need = Need(READ, TABLE, base.identifier)
        if base.through is None or not grantees or await grants.may_in(tx, grantees, need):
            seen.append(base)
    return seen


def _look_through(
    view: MaterializedView, source: SourceState, above: ViewFreshness
) -> list[BaseTable]:
    """The base tables below a source, and what the view has of them."""
    if source.is_ahead is False:
        # The view has everything that its source has.
        known: Mapping[str, int | None] = {base.id: base.followed for base in above.bases}
    elif view.watermark is None:
        known = {base.id: 0 for base in above.bases}
    else:
        known = {base.id: view.watermark.bases.get(base.id) for base in above.bases}
    return [
        BaseTable(base.id, base.identifier, base.head, known[base.id], source.identifier)
        for base in above.bases
    ]


async def _list_views(tx: Transaction, ids: Mapping[str, int]) -> set[str]:
    return {
        id
        for id in ids
        if await tx.fetch_one("SELECT 1 FROM materialized_views WHERE id = $1", id) is not None
    }
