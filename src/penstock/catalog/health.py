"""Health checks: do the catalog's parts answer, do they have room, how much work is waiting."""

import asyncio
import time
from dataclasses import dataclass, field

from penstock.catalog.catalog import Catalog
from penstock.errors import PenstockError
from penstock.lance.storage import disks, files

# Results are cached for so long, so that probes stay cheap.
KEPT_SECONDS = 1.0


@dataclass(slots=True)
class Readiness:
    """Which part has which problem, as of a moment ago."""

    catalog: Catalog
    _found: dict[str, str] = field(default_factory=dict)
    _at: float = -KEPT_SECONDS
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def find_problems(self) -> dict[str, str]:
        """The parts that cannot be used now, each with the reason."""
        async with self._lock:
            if time.monotonic() - self._at >= KEPT_SECONDS:
                self._found = await self._look()
                self._at = time.monotonic()
            return self._found

    async def _look(self) -> dict[str, str]:
        found = {}
        for part, check in (("database", check_database), ("storage", check_storage)):
            try:
                await check(self.catalog)
            except PenstockError as error:
                found[part] = error.message
        return found


async def check_database(catalog: Catalog) -> None:
    """Raise when the database does not answer, or its disk is full."""
    await catalog.database.fetch_one("SELECT count(*) FROM locks")
    if catalog.database_folder:
        await _check_disk(catalog, catalog.database_folder)


async def check_storage(catalog: Catalog) -> None:
    """Raise when the lake's root cannot be listed, or its local disk is full."""
    place = catalog.lake.place(catalog.lake.root)
    await catalog.lake.run(files.check_root, place)
    if place.is_local:
        await _check_disk(catalog, place.location)


async def _check_disk(catalog: Catalog, folder: str) -> None:
    await catalog.lake.run(disks.check_disk, folder, catalog.min_free_bytes)


async def count_work(catalog: Catalog) -> dict[str, int]:
    """Count maintenance work that is waiting, by kind."""
    found = {}
    for name, sql in (
        ("unsettled_versions", "SELECT count(*) FROM table_versions WHERE settled = 0"),
        ("removals", "SELECT count(*) FROM removals"),
    ):
        row = await catalog.database.fetch_one(sql)
        found[name] = row[0] if row else 0
    return found
