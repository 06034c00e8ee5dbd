"""Hold the columns that a definition was made for, until it is recorded.

Whoever drops or alters columns looks for views that read them with the table locked
(`impact/column_changes.py`). The other half is here: whoever records a view locks its tables, and
looks whether they have versions since that the definition was not made for.
"""

from collections.abc import Collection
from functools import partial

from penstock.catalog.catalog import Catalog
from penstock.catalog.materialized_views.definitions import ResolvedView
from penstock.catalog.names import tables
from penstock.catalog.versions import reconcile, versions
from penstock.catalog.versions.commits import RecordRefused
from penstock.database.interface import Transaction
from penstock.errors import TableInUse
from penstock.lance.errors import translated
from penstock.model.identifiers import show
from penstock.model.tables import MAIN
from penstock.sql.doors import requests

# A table that is written all the time has another version at each look.
LOOKS = 30


class ColumnsChanged(TableInUse):
    """A table has other columns than those that the definition was made for."""


class SourceColumns:
    """The columns of a definition's tables, and the newest versions that are known to have them."""

    def __init__(self, catalog: Catalog, defined: ResolvedView) -> None:
        self._catalog = catalog
        self._tables = {table.id: table for table in defined.tables}
        self._known = {table.id: table.version for table in defined.tables}
        self._looks = 0

    async def check_in(self, tx: Transaction) -> None:
        """Raise RecordRefused if a table may have changed; the transaction must have it locked."""
        moved = [
            id for id in sorted(self._known) if await self._find_head(tx, id) != self._known[id]
        ]
        if moved:
            raise RecordRefused(partial(self._look, moved))

    async def _look(self, moved: Collection[str]) -> None:
        """Compare the tables as they are now; raises ColumnsChanged."""
        self._looks += 1
        for id in moved:
            known = self._tables[id]
            # In this order: what comes between the two is found by the next look.
            head = await self._find_head(self._catalog.database, id)
            if self._looks > LOOKS or not await self._has_columns(known):
                raise ColumnsChanged(
                    f"table {show(known.identifier)} changed while the view was made",
                    detail="retry",
                )
            self._known[id] = head

    async def _has_columns(self, known: "requests.SourceTable") -> bool:
        table = await tables.find_by_id(self._catalog.database, known.id)
        if table is None:
            return False
        newest = await reconcile.get_version_of_branch(self._catalog, table, MAIN, None)
        place = self._catalog.lake.place(table.location)

        def look() -> bool:
            with translated():
                opened = self._catalog.datasets.open(place, MAIN, newest)
                return bool(opened.schema.equals(known.schema))

        # Not by a worker: the commit that waits for this has one.
        return await self._catalog.lake.run(look)

    async def _find_head(self, tx: Transaction, id: str) -> int:
        head = await versions.find_head(tx, id, MAIN)
        return 0 if head is None else head.version
