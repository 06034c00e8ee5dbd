"""The arbiter for commits that pylance makes in this process."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from penstock.catalog.catalog import Catalog
from penstock.catalog.versions import commits, reconcile
from penstock.catalog.versions.commits import CommittedVersion, CreateVersion, Guard, Operation
from penstock.catalog.versions.staging import NewVersion
from penstock.errors import VersionNotFound
from penstock.lance.session.bridge import Entry, Request
from penstock.model.branches import check_branch
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import Table, TableVersion

T = TypeVar("T")


class TableArbiter:
    """The versions of one table; `before` runs in the transaction of its first commit.

    `guard` runs in the transaction of each.
    """

    def __init__(
        self,
        catalog: Catalog,
        table: Table,
        origin: Origin = NOBODY,
        before: Sequence[Operation] = (),
        guard: Guard | None = None,
    ) -> None:
        self._catalog = catalog
        self._table = table
        self.origin = origin
        self._before = before
        self._guard = guard
        self._loop = asyncio.get_running_loop()

    def find_latest(self, branch: str | None) -> Entry | None:
        where = check_branch(branch)
        found = self._wait(self._find_latest(where))
        if found is None:
            return None
        # Before another version goes on top of it.
        place = self._catalog.lake.place(self._table.location)
        self._catalog.datasets.check(place, where, found)
        return self._entry(found)

    def get_version(self, branch: str | None, version: int) -> Entry:
        where = check_branch(branch)
        return self._entry(
            self._wait(reconcile.get_version(self._catalog, self._table, where, version))
        )

    def create_version(self, request: Request) -> tuple[Entry, str]:
        new = NewVersion(
            branch=check_branch(request.get("branch")),
            version=request["version"],
            manifest_path=request["manifest_path"],
            manifest_size=request.get("manifest_size"),
            e_tag=request.get("e_tag"),
            metadata=request.get("metadata"),
            naming_scheme=request.get("naming_scheme"),
        )
        created = CreateVersion(self._table.identifier, new, is_ours=True, guard=self._guard)
        operations = [*self._before, created]
        done = self._wait(commits.commit(self._catalog, operations, self.origin))
        committed = done.results[-1]
        assert isinstance(committed, CommittedVersion)
        self._before = ()
        return self._entry(committed.version), done.transaction_id

    async def _find_latest(self, branch: str) -> TableVersion | None:
        if self._before:
            return None
        try:
            return await reconcile.get_version(self._catalog, self._table, branch, None)
        except VersionNotFound:
            return None

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work on the server's event loop, from another thread."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _entry(self, version: TableVersion) -> Entry:
        key = self._catalog.lake.place(self._table.location).key
        entry: Entry = {
            "version": version.version,
            "manifest_path": f"{key}/{version.manifest_path}",
            "manifest_size": version.manifest_size,
            "timestamp_millis": version.timestamp_millis,
        }
        if version.e_tag is not None:
            entry["e_tag"] = version.e_tag
        return entry
