"""What materialized views read, as it is recorded, and whether names mean something else since.

A name in a view's own query keeps the meaning that it is recorded with. One in the SQL of an
Iceberg view stands for whatever has it; recorded is what that was at the last request of a refresh.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from penstock.catalog.names.meaning import Meant, find_meant, reading_as
from penstock.database.interface import Transaction
from penstock.errors import TableInUse
from penstock.model.identifiers import Identifier, from_path

COLUMNS = "view_id, reader, name, fallbacks, source_id, state, edition, consented_by, consented_at"


class InnerName(Struct, frozen=True):
    """A name in the SQL of an Iceberg view, as a path, and the source that it stands for."""

    path: str
    # What it stands for in turn while nothing has the first name.
    fallbacks: tuple[str, ...]
    source: str

    @property
    def candidates(self) -> list[Identifier]:
        return [from_path(path) for path in (self.path, *self.fallbacks)]


class ViewSources(Struct, frozen=True):
    """What a view reads."""

    # Ids by the paths of the names in its own query.
    names: dict[str, str]
    # The SQL of its Iceberg views, by id.
    editions: dict[str, str] = {}
    # The names in the SQL of each of these.
    inner: dict[str, tuple[InnerName, ...]] = {}

    @property
    def ids(self) -> frozenset[str]:
        inner = (each.source for names in self.inner.values() for each in names)
        return frozenset((*self.names.values(), *inner))


@dataclass(frozen=True, slots=True)
class KnownSources:
    """What a view is recorded to read: ids by its own names, and the ids of everything."""

    names: Mapping[Identifier, str]
    ids: frozenset[str]


NOTHING_KNOWN = KnownSources({}, frozenset())


@dataclass(frozen=True, slots=True)
class MovedName:
    """A name in an Iceberg view that stands for something else, or nothing, than is recorded."""

    name: InnerName
    now: Meant | None


async def get_known(tx: Transaction, view_id: str) -> KnownSources:
    rows = await tx.fetch(
        "SELECT reader, name, source_id FROM view_sources WHERE view_id = $1", view_id
    )
    own = {from_path(name): id for reader, name, id in rows if not reader}
    return KnownSources(own, frozenset(row[2] for row in rows))


async def record(
    tx: Transaction, view_id: str, sources: ViewSources, answering: Mapping[str, str]
) -> None:
    """Record what a view reads; raises when a source is gone.

    `answering` says who consented to new sources.
    """
    rows = await tx.fetch(
        "SELECT reader, name, fallbacks, source_id, edition FROM view_sources WHERE view_id = $1",
        view_id,
    )
    known = {tuple(row[:2]): tuple(row[2:]) for row in rows}
    wanted = {("", name): ("[]", id) for name, id in sources.names.items()}
    for reader, names in sources.inner.items():
        for each in names:
            fallbacks = msgspec.json.encode(each.fallbacks).decode()
            wanted[reader, each.path] = (fallbacks, each.source)
    for source in sorted(sources.ids):
        if not await tx.fetch("UPDATE objects SET id = id WHERE id = $1 RETURNING id", source):
            raise TableInUse("a table that the view reads was dropped meanwhile", detail="retry")
    for key in known.keys() - wanted.keys():
        await tx.fetch(
            "DELETE FROM view_sources WHERE view_id = $1 AND reader = $2 AND name = $3",
            *(view_id, *key),
        )
    for key, (fallbacks, source) in wanted.items():
        edition = sources.editions.get(source, "")
        if known.get(key) != (fallbacks, source, edition):
            await tx.fetch(
                "INSERT INTO view_sources (view_id, reader, name, fallbacks, source_id, edition, "
                "consented_by, consented_at) VALUES ($1, $2, $3, $4, $5, $6, $7, now_millis()) "
                "ON CONFLICT (view_id, reader, name) DO UPDATE SET "
                "fallbacks = excluded.fallbacks, source_id = excluded.source_id, "
                "edition = excluded.edition, consented_by = excluded.consented_by, "
                "consented_at = excluded.consented_at, state = CASE WHEN "
                "view_sources.source_id = excluded.source_id THEN view_sources.state END",
                *(view_id, *key, fallbacks, source, edition, answering.get(source, "")),
            )


async def record_states(
    tx: Transaction,
    view_id: str,
    states: Mapping[str, str],
    inner: Mapping[str, Mapping[str, str]],
) -> None:
    """Record what a refresh read: which SQL of Iceberg views, and what the names in it meant."""
    for source, state in states.items():
        await tx.fetch(
            "UPDATE view_sources SET state = $3 "
            "WHERE view_id = $1 AND reader = '' AND source_id = $2",
            *(view_id, source, state),
        )
    for reader, names in inner.items():
        for name, source in names.items():
            await tx.fetch(
                "UPDATE view_sources SET state = $5 "
                "WHERE view_id = $1 AND reader = $2 AND name = $3 AND source_id = $4",
                *(view_id, reader, name, source, states.get(source, source)),
            )


async def find_moved(tx: Transaction, view_id: str, owner: Sequence[str]) -> list[MovedName]:
    """The names in a view's Iceberg views that stand for something else than is recorded."""
    rows = await tx.fetch(
        "SELECT DISTINCT name, fallbacks, source_id FROM view_sources "
        "WHERE view_id = $1 AND reader <> '' ORDER BY name, fallbacks",
        view_id,
    )
    known = (await get_known(tx, view_id)).ids if rows else ()
    found = []
    for path, fallbacks, source in rows:
        name = InnerName(path, msgspec.json.decode(fallbacks, type=tuple[str, ...]), source)
        now = await find_meant(tx, name.candidates, reading_as(tx, owner), known)
        if now is None or now.id != source:
            found.append(MovedName(name, now))
    return found


async def list_sources(tx: Transaction, view_id: str) -> list[str]:
    """What a view reads, and what its Iceberg views read, as far as names in them still mean it."""
    rows = await tx.fetch(
        "SELECT s.source_id, s.reader, s.name, v.metadata_location, m.owner FROM view_sources s "
        "JOIN materialized_views m ON m.id = s.view_id "
        # Whose SQL is another one since the last refresh counts with what it read then.
        "LEFT JOIN view_sources r ON r.view_id = s.view_id AND r.source_id = s.reader "
        "LEFT JOIN views v ON v.id = r.source_id AND v.metadata_location = r.state "
        "WHERE s.view_id = $1 ORDER BY s.source_id",
        view_id,
    )
    moved = set[tuple[str, str]]()
    if any(row[3] for row in rows):
        owner = msgspec.json.decode(rows[0][4], type=tuple[str, ...])
        moved = {(m.name.path, m.name.source) for m in await find_moved(tx, view_id, owner)}
    still = (id for id, _, name, file, _ in rows if not file or (name, id) not in moved)
    return list(dict.fromkeys(still))


async def list_readers(tx: Transaction, source: str) -> list[str]:
    """The views that read something, also by a name in an Iceberg view, if it still means that."""
    rows = await tx.fetch(
        "SELECT view_id, min(reader) FROM view_sources WHERE source_id = $1 "
        "GROUP BY view_id ORDER BY view_id",
        source,
    )
    return [view for view, reader in rows if not reader or source in await list_sources(tx, view)]


async def list_recorded_readers(tx: Transaction, source: str) -> list[str]:
    """The views that read something by their own queries, or did at their last refresh."""
    rows = await tx.fetch(
        "SELECT DISTINCT view_id FROM view_sources WHERE source_id = $1 ORDER BY view_id", source
    )
    return [row[0] for row in rows]
