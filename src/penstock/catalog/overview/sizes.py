"""How large tables are, and how they grew: noted while somebody looks at an overview.

Nobody else needs it, and a commit must not pay for it. One table at a time is opened, and then the
server rests, so that a first look at many tables takes a while and disturbs nobody. What a table
grew by counts for the day of its newest version, and each version for its own day.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.catalog.catalog import Catalog, Look
from penstock.catalog.jobs.queue import DAY_MILLIS
from penstock.catalog.names import tables
from penstock.catalog.overview import counts
from penstock.catalog.overview.counts import Reach
from penstock.catalog.versions import versions
from penstock.database.interface import Transaction
from penstock.errors import PenstockError, TooManyRequests
from penstock.lance.errors import translated
from penstock.lance.read.stats import measure
from penstock.model.tables import MAIN, Table, TableVersion

log = logging.getLogger(__name__)

PAGE = 500
# So many tables are opened in one look, so many seconds lie between the beginnings of two, and the
# server rests so many times as long as opening a table took.
MAX_OPENED, PAUSE_SECONDS, REST = 2_000, 5.0, 3
# And so many times as long as asking for a page of tables took, whether any has changed or not.
REST_AFTER_PAGE = 200
NOTHING = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Growth:
    """How large the tables were at the end of a day, which counts from 1970."""

    day: int
    rows: int
    bytes: int
    # How many versions came on the day.
    commits: int


@dataclass(frozen=True, slots=True)
class Size:
    """How large the tables are together that somebody may see, as far as they were looked at."""

    tables: int
    rows: int
    bytes: int
    days: list[Growth]


def begin_look(catalog: Catalog) -> None:
    """Have the sizes of changed tables noted, unless that is going on or was done just now."""
    last = catalog.looks.get("sizes")
    if last is None or (last.task.done() and time.monotonic() - last.began >= PAUSE_SECONDS):
        task = asyncio.create_task(_look_quietly(catalog))
        catalog.looks["sizes"] = Look(time.monotonic(), task, has_seen_all(catalog))


def has_seen_all(catalog: Catalog) -> bool:
    """Whether the last look of this server that has ended left nothing to note."""
    last = catalog.looks.get("sizes")
    if last is None or not last.task.done():
        return last is not None and last.had_seen_all
    return not last.task.cancelled() and last.task.result()


async def look(catalog: Catalog) -> bool:
    """Note the sizes of tables that have changed; whether that were all of them."""
    after, opened, left = "", 0, 0
    while True:
        began = time.monotonic()
        rows = await catalog.database.fetch(
            "SELECT t.id, s.version, (SELECT max(v.version) FROM table_versions v "
            "WHERE v.table_id = t.id AND v.branch = $3 AND v.hidden = 0) "
            "FROM (SELECT id FROM tables WHERE id > $1 ORDER BY id LIMIT $2) t "
            "LEFT JOIN table_sizes s ON s.table_id = t.id ORDER BY t.id",
            *(after, PAGE, MAIN),
        )
        asked = time.monotonic() - began
        for id, noted, head in rows:
            if head is None or head == noted:
                continue
            if opened == MAX_OPENED:
                return False
            opened += 1
            began = time.monotonic()
            left += not await _note(catalog, id, head)
            await asyncio.sleep((time.monotonic() - began) * REST)
        if len(rows) < PAGE:
            return left == 0
        after = rows[-1][0]
        # SQLite answers at once: others get their turn here.
        await asyncio.sleep(asked * REST_AFTER_PAGE)


async def sum_up(tx: Transaction, only: Sequence[str] | None, today: int, days: int) -> Size:
    """The sizes of all tables that holders of these grants see, now and at the end of each day."""
    count, rows, size = 0, 0, 0
    grown: dict[int, tuple[int, int, int]] = {}
    for within, values in await _list_parts(tx, only):
        # From the names on, so that what is not asked for is not looked at.
        relations = "objects o CROSS JOIN {0} s WHERE s.table_id = o.id AND" if within else "{0} s"
        sizes = relations.format("table_sizes")
        row = await tx.fetch_one(
            f"SELECT count(*), sum(s.row_count), sum(s.byte_count) FROM {sizes} {within}", *values
        )
        assert row is not None
        count, rows, size = count + row[0], rows + int(row[1] or 0), size + int(row[2] or 0)
        growth = relations.format("table_growth")
        joint = "AND" if within else "WHERE"
        for day, *more in await tx.fetch(
            "SELECT s.day, sum(s.row_count), sum(s.byte_count), sum(s.commits) "
            f"FROM {growth} {within} {joint} s.day > ${len(values) + 1} GROUP BY s.day",
            *(*values, today - days),
        ):
            before = grown.get(day, NOTHING)
            grown[day] = (
                before[0] + int(more[0]),
                before[1] + int(more[1]),
                before[2] + int(more[2]),
            )
    return Size(count, rows, size, _list_days(rows, size, grown, range(today, today - days, -1)))


async def _list_parts(
    tx: Transaction, only: Sequence[str] | None
) -> list[tuple[str, tuple[str, ...]]]:
    """What somebody sees, in parts that share nothing: conditions on objects, and their values."""
    reach = Reach(("",), ()) if only is None else await counts.find_reach(tx, only)
    if "" in reach.trees:
        return [("", ())]
    # Paths below one start with it and the separator, which sorts just before a space.
    found: list[tuple[str, tuple[str, ...]]] = [
        ("o.namespace >= $1 AND o.namespace < $2", (t, f"{t} ")) for t in reach.trees
    ]
    outside = await counts.list_outside(tx, reach)
    for start in range(0, len(outside), counts.AT_ONCE):
        some = tuple(outside[start : start + counts.AT_ONCE])
        places = ", ".join(f"${n + 1}" for n in range(len(some)))
        found.append((f"o.id IN ({places})", some))
    return found


def _list_days(
    rows: int, size: int, grown: Mapping[int, tuple[int, int, int]], newest_first: Iterable[int]
) -> list[Growth]:
    """What there was at the end of each day, reckoned back from what there is now."""
    found = list[Growth]()
    for day in newest_first:
        more, larger, commits = grown.get(day, NOTHING)
        found.append(Growth(day, rows, size, commits))
        rows, size = rows - more, size - larger
    return found[::-1]


async def _look_quietly(catalog: Catalog) -> bool:
    try:
        return await look(catalog)
    except PenstockError as error:
        log.warning("the sizes of tables are not noted: %s", error.message)
    except Exception:
        # A bug: log it in full, and answer without.
        log.exception("the sizes of tables are not noted")
    return False


async def _note(catalog: Catalog, id: str, head: int) -> bool:
    """Note the size of a table; False when it has to be tried again."""
    table = await tables.find_by_id(catalog.database, id)
    version = await versions.find(catalog.database, id, MAIN, head)
    if table is None or version is None:
        return True
    if not version.settled:
        return False
    try:
        found = await catalog.workers.run(_measure, catalog, table, version)
    except TooManyRequests:
        return False
    except PenstockError as error:
        log.info("the size of table %s is not known: %s", table, error.message)
        found = None
    await catalog.database.write(_record, id, version, found)
    return True


def _measure(catalog: Catalog, table: Table, version: TableVersion) -> tuple[int, int]:
    place = catalog.lake.place(table.location)
    with translated():
        return measure(catalog.datasets.open(place, MAIN, version, is_kept=False))


async def _record(
    tx: Transaction, id: str, version: TableVersion, found: tuple[int, int] | None
) -> None:
    """Note a size; one that is not known counts as the one before, until the next version."""
    # Locked first, so that of two servers each counts what the other did not.
    if not await tx.fetch("UPDATE tables SET id = id WHERE id = $1 RETURNING id", id):
        return
    known = await tx.fetch_one(
        "SELECT version, row_count, byte_count FROM table_sizes WHERE table_id = $1", id
    )
    then, *before = (0, 0, 0) if known is None else known
    rows, size = before if found is None else found
    await tx.fetch(
        "INSERT INTO table_sizes (table_id, version, row_count, byte_count) "
        "VALUES ($1, $2, $3, $4) ON CONFLICT (table_id) DO UPDATE SET version = excluded.version, "
        "row_count = excluded.row_count, byte_count = excluded.byte_count",
        *(id, version.version, rows, size),
    )
    grown = {version.timestamp_millis // DAY_MILLIS: (rows - before[0], size - before[1], 0)}
    for day, commits in await tx.fetch(
        f"SELECT timestamp_millis / {DAY_MILLIS}, count(*) FROM table_versions WHERE table_id = $1 "
        "AND branch = $2 AND version > $3 AND version <= $4 AND hidden = 0 GROUP BY 1",
        *(id, MAIN, then, version.version),
    ):
        grown[day] = (*grown.get(day, NOTHING)[:2], commits)
    for day, more in grown.items():
        if more == NOTHING:
            continue
        await tx.fetch(
            "INSERT INTO table_growth (table_id, day, row_count, byte_count, commits) "
            "VALUES ($1, $2, $3, $4, $5) ON CONFLICT (table_id, day) DO UPDATE SET "
            "row_count = table_growth.row_count + excluded.row_count, "
            "byte_count = table_growth.byte_count + excluded.byte_count, "
            "commits = table_growth.commits + excluded.commits",
            *(id, day, *more),
        )
