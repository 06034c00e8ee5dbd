"""One at a time: what must not run twice at once for a branch, in this server and in others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from penstock.catalog.catalog import Catalog
from penstock.model.tables import Table


@asynccontextmanager
async def alone(catalog: Catalog, what: str, table: Table, branch: str) -> AsyncIterator[None]:
    """Wait for the same work of this server; that of others is safe beside it, only wasted."""
    lock = catalog.upkeep_locks.setdefault((what, table.id, branch), asyncio.Lock())
    async with lock:
        yield
