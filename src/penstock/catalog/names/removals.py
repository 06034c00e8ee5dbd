"""Removals: delete the folders of dropped tables after the drop is durable.

The drop's transaction records the location, so a crash before or during the deletion only delays
it: maintenance carries on. Whoever deletes claims the location first, and nobody can declare a
table there until the removal is finished.
"""

import logging
from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.errors import InvalidTableState, Unavailable
from penstock.lance.storage import files

log = logging.getLogger(__name__)

# After this long, the process that claimed a removal counts as dead.
CLAIM_MILLIS = 3_600_000


async def enqueue(tx: Transaction, locations: Sequence[str]) -> None:
    """Record that these folders are to be deleted."""
    for location in locations:
        await tx.fetch(
            "INSERT INTO removals (location, created_at, claimed_at) "
            "VALUES (relative($1), now_millis(), 0) ON CONFLICT DO NOTHING",
            location,
        )


async def carry_out(catalog: Catalog, locations: Sequence[str]) -> None:
    """Delete the folders' files and the records; what storage refuses is retried later."""
    if not locations:
        return
    crash_point("removal recorded")
    for location in await catalog.database.write(_claim, locations):
        try:
            place = catalog.lake.place(location)
            catalog.datasets.forget(place)
            await catalog.lake.run(files.remove_all, place)
        except InvalidTableState as error:
            # From before locations had one spelling: nobody can tell whose files these are.
            log.warning("the files at %s stay: %s", location, error.message)
            await catalog.database.write(_forget, location)
        except Unavailable as error:
            log.warning("will try again to remove %s: %s", location, error.message)
            await catalog.database.write(_unclaim, location)
        else:
            await catalog.database.write(_forget, location)


async def hold(tx: Transaction, location: str) -> int:
    """Record a folder that is being written, as if it were being removed; returns since when.

    Whoever writes it lets go of it when it belongs to a table. Otherwise it is removed.
    """
    row = await tx.fetch_one(
        "INSERT INTO removals (location, created_at, claimed_at) "
        "VALUES (relative($1), now_millis(), now_millis()) RETURNING claimed_at",
        location,
    )
    assert row is not None
    return int(row[0])


async def let_go(tx: Transaction, location: str, since: int) -> bool:
    """Take back such a record; False when somebody else removes the folder meanwhile."""
    row = await tx.fetch_one(
        "DELETE FROM removals WHERE location = relative($1) AND claimed_at = $2 RETURNING location",
        *(location, since),
    )
    return row is not None


async def release(tx: Transaction, location: str) -> None:
    """Leave a folder to the next round of maintenance."""
    await _unclaim(tx, location)


async def list_pending(tx: Transaction) -> list[str]:
    """The folders that are still to be deleted, oldest first."""
    rows = await tx.fetch(
        "SELECT absolute(location) FROM removals ORDER BY created_at, location LIMIT 1000"
    )
    return [row[0] for row in rows]


async def release_claims(tx: Transaction) -> None:
    """Release all claims; for the only process that uses a database, at its start."""
    await tx.fetch("UPDATE removals SET claimed_at = 0")


async def _claim(tx: Transaction, locations: Sequence[str]) -> list[str]:
    claimed = []
    for location in locations:
        row = await tx.fetch_one(
            "UPDATE removals SET claimed_at = now_millis() "
            "WHERE location = relative($1) AND claimed_at < now_millis() - $2 "
            # A running backup still copies tables that were dropped since it began.
            "AND NOT EXISTS (SELECT 1 FROM locks WHERE name LIKE 'backup:%' "
            "AND taken > now_millis()) RETURNING location",
            location,
            CLAIM_MILLIS,
        )
        if row is not None:
            claimed.append(location)
    return claimed


async def _unclaim(tx: Transaction, location: str) -> None:
    await tx.fetch("UPDATE removals SET claimed_at = 0 WHERE location = relative($1)", location)


async def _forget(tx: Transaction, location: str) -> None:
    await tx.fetch("DELETE FROM removals WHERE location = relative($1)", location)
