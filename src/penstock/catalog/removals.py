"""Removals: folders of dropped tables, emptied after the drop is durable.

The location is noted in the transaction of the drop, so that a crash before or while its files
are deleted only delays that: maintenance carries on.
"""

import logging
from collections.abc import Sequence

from penstock.catalog.catalog import Catalog
from penstock.crash import crash_point
from penstock.database.interface import Transaction
from penstock.datasets import files
from penstock.errors import Unavailable

log = logging.getLogger(__name__)


async def enqueue(tx: Transaction, locations: Sequence[str]) -> None:
    """Note that these folders are to be emptied."""
    for location in locations:
        await tx.fetch(
            "INSERT INTO removals (location, created_at) VALUES ($1, now_millis()) "
            "ON CONFLICT DO NOTHING",
            location,
        )


async def carry_out(catalog: Catalog, locations: Sequence[str]) -> None:
    """Empty the folders and forget them; what storage refuses now is tried again later."""
    done = []
    if locations:
        crash_point("removal recorded")
    for location in locations:
        try:
            await catalog.lake.run(files.remove_all, catalog.lake.place(location))
            done.append(location)
        except Unavailable as error:
            log.warning("will try again to remove %s: %s", location, error.message)
    if done:
        await catalog.database.write(_forget, done)


async def list_pending(tx: Transaction) -> list[str]:
    """The folders that still wait, oldest first."""
    rows = await tx.fetch("SELECT location FROM removals ORDER BY created_at, location LIMIT 1000")
    return [row[0] for row in rows]


async def _forget(tx: Transaction, locations: Sequence[str]) -> None:
    for location in locations:
        await tx.fetch("DELETE FROM removals WHERE location = $1", location)
