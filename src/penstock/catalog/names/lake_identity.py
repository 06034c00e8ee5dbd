"""The lake's identity: lake and catalog carry the same id, and a server refuses to start when they
differ. Otherwise an empty or replaced database would start fresh beside a lake full of tables and
claim that there are none.

The id is written to the database before the lake's root, so a reader in the other order never
mistakes someone's first start for a foreign lake. The database also records the lake's location,
because it stores locations relative to it: a catalog never follows a changed setting to another
place by itself.
"""

import logging
import uuid

from penstock.database import schema
from penstock.database.interface import Database, Transaction
from penstock.database.location_sql import is_relative
from penstock.errors import DatabaseMismatch, Unavailable
from penstock.lance.storage import lake_marker
from penstock.lance.storage.lake import Lake
from penstock.model.locations import is_within, join

log = logging.getLogger(__name__)

NAME = "catalog"
# Every column with locations that are stored relative to the root.
KEPT = (
    ("tables", "location"),
    ("removals", "location"),
    ("views", "location"),
    ("views", "folder"),
    ("iceberg_tables", "location"),
    ("iceberg_tables", "folder"),
    ("iceberg_tables", "metadata_folder"),
)
RESTORE = (
    "restore the catalog's database from a backup, or name the right one (database.url, --data). "
    "To begin anew, choose another storage.root; or start once with --begin-anew: the lake's "
    "tables stay where they are, and no catalog knows them"
)


async def check_setup(database: Database, lake: Lake) -> None:
    """Before setting up an empty database: refuse if the lake already has a catalog."""
    place = lake.place(lake.root)
    found = await lake.run(lake_marker.read_marker, place)
    if not found and not await lake.run(lake_marker.holds_tables, place):
        return
    # Another server may just have been first.
    if (await schema.get_status(database)).is_fresh:
        raise _refuse(lake, found, "the database is empty")


async def claim(database: Database, lake: Lake, *, begin_anew: bool = False) -> None:
    """Claim the lake's root for this catalog; refuse if it is another's."""
    place = lake.place(lake.root)
    found = await lake.run(lake_marker.read_marker, place)
    own, is_empty, is_known = await database.read(_look, lake.root)
    if not own:
        if found and not begin_anew and not is_known:
            raise _refuse(lake, found, "the database does not know it")
        holds = not found and is_empty and not begin_anew
        if holds and await lake.run(lake_marker.holds_tables, place):
            raise _refuse(lake, "", "the database is empty")
        # A catalog from before ids, perhaps from a backup, is the one that the lake belongs to.
        own = await database.write(_name, found if is_known and found else uuid.uuid4().hex)
    # Before the mark: a lake that this catalog has left must not be marked as its own.
    await database.write(_settle_root, lake)
    if found == own:
        return
    if found and not begin_anew:
        raise _refuse(lake, found, f"the database is catalog {own}")
    try:
        await lake.run(lake_marker.write_marker, place, own, replaces=begin_anew)
        found = await lake.run(lake_marker.read_marker, place)
    except Unavailable as error:
        # A read-only store cannot be marked.
        log.warning("the lake is not marked as this catalog's: %s", error.message)
        return
    if found != own:
        raise _refuse(lake, found, f"the database is catalog {own}")


async def _look(tx: Transaction, root: str) -> tuple[str, bool, bool]:
    """The catalog's id, whether it is empty, and whether one of its tables is in the root."""
    row = await tx.fetch_one("SELECT id FROM lake_mark WHERE name = $1", NAME)
    thing = await tx.fetch_one("SELECT 1 FROM objects LIMIT 1")
    folder = await tx.fetch_one("SELECT 1 FROM namespaces WHERE path <> '' LIMIT 1")
    below = root.rstrip("/") + "/"
    known = await tx.fetch_one(
        "SELECT 1 FROM tables WHERE location >= $1 AND location < $2 LIMIT 1",
        below,
        below[:-1] + "0",
    )
    return "" if row is None else str(row[0]), thing is None and folder is None, known is not None


async def _settle_root(tx: Transaction, lake: Lake) -> None:
    """Record where the lake is; locations below are stored relative to it from then on."""
    below = join(lake.root, "")
    if await find_root(tx) == below:
        return
    # Locked from here on, so that of several starting servers one does it.
    rows = await tx.fetch("UPDATE lake_mark SET root = root WHERE name = $1 RETURNING root", NAME)
    known = str(rows[0][0])
    if known == below:
        return
    if known and known not in {join(root, "") for root in lake.roots}:
        raise DatabaseMismatch(
            f"the catalog's lake is at {known}, and storage.root is {below}",
            detail="if the lake was moved or copied there, run 'penstock relocate' once; if only "
            "new tables are to go there, add the old root to storage.allowed_roots; else name the "
            "right storage.root or --data",
        )
    if not known and await _is_elsewhere(tx, lake):
        raise DatabaseMismatch(
            f"none of the catalog's tables is at {below}",
            detail="if the lake was moved or copied there, run 'penstock relocate --was OLD' with "
            "its old root; else add that to storage.allowed_roots, or name the right storage.root",
        )
    # The lake moved: tables at the old root stay there.
    await leave_root(tx)
    await set_root(tx, below)


async def _is_elsewhere(tx: Transaction, lake: Lake) -> bool:
    """Whether an old catalog has tables, and all of them outside this lake."""
    rows = await tx.fetch("SELECT location FROM tables")
    return bool(rows) and not any(is_within(row[0], root) for row in rows for root in lake.roots)


async def find_root(tx: Transaction) -> str:
    """The lake's root with a trailing slash; empty when no server has recorded it."""
    row = await tx.fetch_one("SELECT root FROM lake_mark WHERE name = $1", NAME)
    return "" if row is None else str(row[0])


async def set_root(tx: Transaction, below: str) -> None:
    """Set the lake's root; absolute locations below it become relative."""
    await tx.fetch("UPDATE lake_mark SET root = $2 WHERE name = $1", NAME, below)
    for relation, column in KEPT:
        await tx.fetch(
            f"UPDATE {relation} SET {column} = substr({column}, $2) "
            f"WHERE substr({column}, 1, $2 - 1) = $1",
            below,
            len(below) + 1,
        )


async def begin(tx: Transaction, below: str) -> None:
    """Record where the lake of an old catalog was."""
    await _name(tx, uuid.uuid4().hex)
    await set_root(tx, below)


async def become(tx: Transaction, id: str, below: str) -> None:
    """Give loaded rows a new catalog id, with a lake of its own."""
    await tx.fetch("DELETE FROM lake_mark")
    await _name(tx, id)
    await set_root(tx, below)


async def leave_root(tx: Transaction) -> None:
    """Make all locations absolute, so that tables stay where they are when the lake moves."""
    for relation, column in KEPT:
        await tx.fetch(
            f"UPDATE {relation} SET {column} = absolute({column}) WHERE {is_relative(column)}"
        )


async def _name(tx: Transaction, id: str) -> str:
    await tx.fetch(
        "INSERT INTO lake_mark (name, id, created_at) VALUES ($1, $2, now_millis()) "
        "ON CONFLICT (name) DO NOTHING",
        NAME,
        id,
    )
    row = await tx.fetch_one("SELECT id FROM lake_mark WHERE name = $1", NAME)
    assert row is not None
    return str(row[0])


def _refuse(lake: Lake, found: str, why: str) -> DatabaseMismatch:
    owner = f"belongs to catalog {found}" if found else "holds tables of a catalog"
    return DatabaseMismatch(f"the lake at {lake.root} {owner}, and {why}", detail=RESTORE)
