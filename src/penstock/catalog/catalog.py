"""The catalog's shared state, passed to every rule that needs more than one transaction."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from penstock.catalog.iceberg_tables.kept_documents import KeptDocuments
from penstock.catalog.jobs.queue import Queue
from penstock.catalog.versions import versions
from penstock.catalog.versions.settling import Key, Settler
from penstock.database.interface import Database
from penstock.lance.session.handles import Datasets
from penstock.lance.storage.credentials import Vendor
from penstock.lance.storage.data_threads import Workers
from penstock.lance.storage.lake import Lake
from penstock.model.tables import Table


@dataclass(frozen=True, slots=True)
class Look:
    """Work in the background: since when (monotonic), and whether the one before saw everything."""

    began: float
    task: "asyncio.Task[bool]"
    had_seen_all: bool


@dataclass(slots=True)
class UpkeepCounts:
    """What this server has done by policies since it started, for metrics."""

    runs: int = 0
    failures: int = 0
    fragments_removed: int = 0
    versions_removed: int = 0
    bytes_removed: int = 0


@dataclass(frozen=True)
class Catalog:
    database: Database
    lake: Lake
    managed_versions: bool = True
    staged_seconds: int = 3600
    transaction_days: int = 7
    idempotency_seconds: int = 1800
    cache_bytes: int = 268_435_456
    data_threads: int = 8
    max_data_requests: int = 64
    # The folder of a local database, whose disk is checked; empty for a remote database.
    database_folder: str = ""
    min_free_bytes: int = 0
    query_seconds: float = 60
    max_batch_bytes: int = 268_435_456
    # The most that one statement may take.
    sql_seconds: float = 60
    sql_max_rows: int = 1_000_000
    sql_max_bytes: int = 134_217_728
    queue: Queue = field(default_factory=Queue)
    # Issues credentials to clients; None when they get none.
    vendor: Vendor | None = None
    settler: Settler = field(init=False)
    datasets: Datasets = field(init=False)
    workers: Workers = field(init=False)
    # Held while the ledger is read and appended to.
    ledger_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    # Metadata of Iceberg tables.
    documents: KeptDocuments = field(default_factory=KeptDocuments)
    # By table and branch; managed by `appends`.
    appenders: dict[tuple[str, str], object] = field(default_factory=dict)
    # By table and branch: held by the merge that is running there, and removed when none is.
    merge_locks: "WeakValueDictionary[tuple[str, str], asyncio.Lock]" = field(
        default_factory=WeakValueDictionary
    )
    # By work, table and branch: held by the upkeep that is running there.
    upkeep_locks: "WeakValueDictionary[tuple[str, str, str], asyncio.Lock]" = field(
        default_factory=WeakValueDictionary
    )
    upkeep_counts: UpkeepCounts = field(default_factory=UpkeepCounts)
    # Branches with commits, and when (monotonic) to look for staged leftovers there.
    visits: dict[tuple[str, str], tuple[Table, float]] = field(default_factory=dict)

    # By rights and question: until when it counts, until when what is counted in it does, and it.
    overviews: dict[object, tuple[float, float, Any]] = field(default_factory=dict)
    # What goes on in the background for who looks, by name.
    looks: dict[str, Look] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The class is frozen for everyone else; these fields are made from the others.
        object.__setattr__(self, "settler", Settler(self.lake, self._note_settled))
        object.__setattr__(self, "datasets", Datasets(self.lake.options, self.cache_bytes))
        object.__setattr__(self, "workers", Workers(self.data_threads, self.max_data_requests))

    async def _note_settled(self, keys: Sequence[Key]) -> None:
        await self.database.write(versions.mark_settled, keys)

    def visit_later(self, table: Table, branch: str) -> None:
        """Make maintenance look for leftovers here once the present ones are old enough."""
        due = time.monotonic() + self.staged_seconds
        self.visits.setdefault((table.id, branch), (table, due))

    async def close(self) -> None:
        for look in self.looks.values():
            look.task.cancel()
        await asyncio.gather(*(look.task for look in self.looks.values()), return_exceptions=True)
        await asyncio.to_thread(self.workers.close)
        await self.settler.flush()
        await self.database.close()
        self.lake.close()
