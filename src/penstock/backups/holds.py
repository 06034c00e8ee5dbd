"""Holds: they keep files from being deleted while a backup copies them.

A row in `locks`, renewed while the backup runs, stops the server from emptying folders of dropped
tables. A tag on the newest version of each branch protects that version from clean-ups; tags that a
crashed backup left are removed by the next backup.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from penstock.database.interface import Database, Transaction
from penstock.errors import Unavailable
from penstock.lance import refs
from penstock.lance.copies.copy_plan import HOLD
from penstock.lance.refs import TAGS, Tag
from penstock.lance.storage.lake import Place

LOCK = "backup:"
HOLD_SECONDS = 600
BEAT_SECONDS = 60


@asynccontextmanager
async def hold_removals(database: Database) -> AsyncIterator[str]:
    """Keep dropped tables' files for the length of a block; yields the name of the hold."""
    name = uuid.uuid4().hex[:16]
    await database.write(_extend, name)
    beat = asyncio.create_task(_go_on(database, name))
    try:
        yield name
    finally:
        beat.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beat
        await database.write(_drop, name)


async def list_holds(tx: Transaction) -> set[str]:
    """The names of the backups that are running."""
    rows = await tx.fetch(
        "SELECT name FROM locks WHERE name LIKE 'backup:%' AND taken > now_millis()"
    )
    return {str(row[0]).removeprefix(LOCK) for row in rows}


@contextmanager
def hold_versions(
    place: Place, name: str, heads: Mapping[str, int], alive: Collection[str]
) -> Iterator[None]:
    """Keep these versions of a table for the length of a block; blocks."""
    made = []
    try:
        # A store that cannot be written to cannot be cleaned up either.
        with contextlib.suppress(Unavailable):
            for tag in refs.list_names(place, TAGS):
                if tag.startswith(HOLD) and tag.removeprefix(HOLD).split("-")[0] not in alive:
                    refs.delete_tag(place, tag)
            for number, (branch, version) in enumerate(sorted(heads.items())):
                tag = f"{HOLD}{name}-{number}"
                refs.create_tag(place, tag, Tag(version, branch or None))
                made.append(tag)
        yield
    finally:
        for tag in made:
            with contextlib.suppress(Unavailable):
                refs.delete_tag(place, tag)


async def _go_on(database: Database, name: str) -> None:
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        with contextlib.suppress(Unavailable):
            await database.write(_extend, name)


async def _extend(tx: Transaction, name: str) -> None:
    await tx.fetch(
        "INSERT INTO locks (name, taken) VALUES ($1, now_millis() + $2) "
        "ON CONFLICT (name) DO UPDATE SET taken = excluded.taken",
        f"{LOCK}{name}",
        HOLD_SECONDS * 1000,
    )


async def _drop(tx: Transaction, name: str) -> None:
    await tx.fetch("DELETE FROM locks WHERE name = $1", f"{LOCK}{name}")
