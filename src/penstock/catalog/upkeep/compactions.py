"""Compact a table, piece by piece, for as long as the caller gives it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.upkeep.locks import alone
from penstock.crash import crash_point
from penstock.errors import ConcurrentCommit
from penstock.lance.errors import naming, translated
from penstock.lance.upkeep import compaction
from penstock.lance.upkeep.compaction import FragmentSize, Piece
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table

# Fragments to leave as they are, of those of a version and how many rows one should have.
Exclude = Callable[[Sequence[FragmentSize], int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a compaction did, and how many pieces are left for another one."""

    version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    # Pieces that somebody else changed meanwhile: they stay as they were.
    pieces_lost: int = 0
    pieces_left: int = 0


async def compact(
    catalog: Catalog,
    table: Table,
    branch: str,
    seconds: float,
    origin: Origin = NOBODY,
    *,
    deleted_share: float = compaction.DELETED_SHARE,
    exclude: Exclude = lambda sizes, target: (),
) -> Compaction:
    """Compact until it is done or the time is up, which ends no piece that has begun."""
    deadline = time.monotonic() + seconds
    # Compacting again changes nothing, so the request needs no key in its commits, which are many.
    unkeyed = replace(origin, keys=())
    async with alone(catalog, "compaction", table, branch):
        version, pieces = await _plan(catalog, table, branch, unkeyed, deleted_share, exclude)
        removed = added = lost = done = 0
        for piece in pieces:
            if done and time.monotonic() > deadline:
                break
            done += 1
            try:
                made = await _run(catalog, table, piece)
            except ConcurrentCommit:
                lost += 1
                continue
            crash_point("piece compacted")
            removed, added = removed + piece.fragments, added + made
    if removed:
        version = await datasets.find_newest(catalog, table, branch) or version
    return Compaction(version, removed, added, lost, len(pieces) - done)


async def _plan(
    catalog: Catalog,
    table: Table,
    branch: str,
    origin: Origin,
    deleted_share: float,
    exclude: Exclude,
) -> tuple[int, list[Piece]]:
    # Raises what a branch or a table without rows has to be told.
    await datasets.read(catalog, table, branch, None, lambda dataset: None, is_brief=True)
    bridge = datasets.make_bridge(catalog, table, origin)
    place = catalog.lake.place(table.location)

    def plan() -> tuple[int, list[Piece]]:
        with translated(bridge):
            dataset = catalog.datasets.open_to_commit(place, branch, bridge, list(table.identifier))
            with naming(place, dataset):
                sizes = compaction.measure_fragments(dataset)
                excluded = exclude(sizes, compaction.find_target_rows(sizes))
                return dataset.version, compaction.plan_pieces(
                    dataset, sizes, deleted_share, excluded
                )

    return await catalog.workers.run(plan)


async def _run(catalog: Catalog, table: Table, piece: Piece) -> int:
    place = catalog.lake.place(table.location)

    def run() -> int:
        with translated(), naming(place, piece.dataset):
            return compaction.compact_piece(piece)

    return await catalog.workers.run(run)
