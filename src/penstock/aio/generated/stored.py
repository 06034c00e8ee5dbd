"""Stored of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from penstock.aio.generated.readable import AsyncReadable
from penstock.sdk.tables.stored import Stored
from penstock.sdk.tables.upkeep import WEEK

if TYPE_CHECKING:
    import datetime
    from collections.abc import Sequence
    from typing import Unpack

    import lance

    from penstock.aio.generated.job import AsyncJob
    from penstock.aio.generated.registered_function import AsyncRegisteredFunction
    from penstock.sdk.connection.names import Name
    from penstock.sdk.jobs.options import BackfillOptions, IndexOptions
    from penstock.sdk.jobs.plans import Plan
    from penstock.sdk.jobs.previews import Preview
    from penstock.sdk.jobs.row_errors import RowError
    from penstock.sdk.rows.types import Schema
    from penstock.sdk.tables.columns import Fills
    from penstock.sdk.tables.refs import Branch, Index, Tag, Version
    from penstock.sdk.tables.upkeep import CleanupResult, CompactionResult, UpkeepPolicy


class AsyncStored(AsyncReadable):
    """A name with rows of its own, on its main branch at the newest version unless asked else."""

    _wrapped: Stored

    async def describe(self) -> dict[str, Any]:
        """Location, properties, version, schema and statistics, as the server tells them."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    async def location(self) -> str:
        """Where its files are."""
        found: str = await self._run(self._wrapped.location)
        return found

    async def to_lance(self) -> lance.LanceDataset:
        """The dataset itself, for all that Lance can do; commits go through the catalog."""
        found: lance.LanceDataset = await self._run(self._wrapped.to_lance)
        return found

    async def rename(self, name: Name, *, cascade: bool = False, force: bool = False) -> Self:
        """Give it another name, and return it under that.

        A name without a namespace stays in its own; `shop.items` moves it. Materialized views that
        read it follow. Iceberg views know it by its name, so they refuse this; with `cascade` they
        follow, and `force` lets them break.
        """
        found: Self = await self._run(self._wrapped.rename, name, cascade=cascade, force=force)
        return found

    async def add_column(
        self,
        name: str,
        function: Fills | AsyncRegisteredFunction | None = None,
        *,
        computed: str | None = None,
        sql: str | None = None,
        data_type: Any = None,
        inputs: Sequence[str] | None = None,
        auto_backfill: bool = False,
    ) -> Self:
        """Add a column, by one of four: a function, `computed`, `sql`, or `data_type` alone.

        function: fills it, by `backfill`; a decorated one, or a registered one by its handle or
            name. `inputs` and `data_type` are the function's own unless they are given.
        computed: SQL that fills it, by `backfill`; it is computed again where its inputs change.
        sql: SQL that gives its values now, once.
        data_type: its type; it has no values then, and is written like any other column.
        auto_backfill: have a function or `computed` fill it by itself, now and after changes.
        """
        found: Self = await self._run(
            self._wrapped.add_column,
            name,
            function,
            computed=computed,
            sql=sql,
            data_type=data_type,
            inputs=inputs,
            auto_backfill=auto_backfill,
        )
        return found

    async def add_columns(
        self,
        columns: Fills | AsyncRegisteredFunction | Schema,
        *,
        inputs: Sequence[str] | None = None,
        auto_backfill: bool = False,
    ) -> Self:
        """Add several columns: those of a function with several outputs, or some without values.

        columns: a function, decorated or registered; it fills the columns that it names, or the
            fields of the TypedDict or dataclass that it returns. Or types by name, such as
            `{"note": str, "score": "float32"}`, or an Arrow schema.
        """
        found: Self = await self._run(
            self._wrapped.add_columns, columns, inputs=inputs, auto_backfill=auto_backfill
        )
        return found

    async def alter_column(
        self,
        column: str,
        function: Fills | AsyncRegisteredFunction | None = None,
        *,
        inputs: Sequence[str] | None = None,
        data_type: Any = None,
        nullable: bool | None = None,
        cascade: bool = False,
        force: bool = False,
    ) -> Self:
        """Give a column another function, or version of it, another type, or other nullability.

        With another function, the next backfill computes it again. What reads a column refuses
        another type of it; `cascade` and `force` are as for `rename_column`.
        """
        found: Self = await self._run(
            self._wrapped.alter_column,
            column,
            function,
            inputs=inputs,
            data_type=data_type,
            nullable=nullable,
            cascade=cascade,
            force=force,
        )
        return found

    async def rename_column(
        self, column: str, name: str, *, cascade: bool = False, force: bool = False
    ) -> Self:
        """Give a column another name; what reads it refuses this.

        With `cascade`, views and computed columns follow; `force` lets them break.
        """
        found: Self = await self._run(
            self._wrapped.rename_column, column, name, cascade=cascade, force=force
        )
        return found

    async def drop_columns(self, *columns: str, cascade: bool = False, force: bool = False) -> Self:
        """Drop columns; what reads them refuses this.

        `cascade` drops it along with them, `force` lets it break.
        """
        found: Self = await self._run(
            self._wrapped.drop_columns, *columns, cascade=cascade, force=force
        )
        return found

    async def computed_columns(self) -> dict[str, dict[str, Any]]:
        """What fills each computed column, and how many rows of it are in which state.

        `rows_by_state` counts all rows as `fresh`, `stale`, `unfilled` or `failed`, and
        `stale_by_reason` tells why the stale ones are; they are looked at for that.
        """
        found: dict[str, dict[str, Any]] = await self._run(self._wrapped.computed_columns)
        return found

    async def preview(
        self, column: str, rows: int = 10, *, where: str | None = None, timeout: float = 60
    ) -> Preview:
        """What a column would be for a few rows; nothing is written."""
        found: Preview = await self._run(
            self._wrapped.preview, column, rows, where=where, timeout=timeout
        )
        return found

    async def backfill(
        self,
        column: str,
        *,
        wait: bool = True,
        progress: bool | None = None,
        **options: Unpack[BackfillOptions],
    ) -> AsyncJob:
        """Fill a column where it needs it; waits for the job unless `wait=False`."""
        found: AsyncJob = await self._run(
            self._wrapped.backfill, column, wait=wait, progress=progress, **options
        )
        return found

    async def explain_backfill(self, column: str, **options: Unpack[BackfillOptions]) -> Plan:
        """What a backfill would do, without doing it."""
        found: Plan = await self._run(self._wrapped.explain_backfill, column, **options)
        return found

    async def errors(
        self, column: str | None = None, *, limit: int | None = None
    ) -> list[RowError]:
        """Rows that functions failed on in any job, the newest first: all, or so many."""
        found: list[RowError] = await self._run(self._wrapped.errors, column, limit=limit)
        return found

    async def version(self) -> int:
        """The newest version, or the one that this table was asked for."""
        found: int = await self._run(self._wrapped.version)
        return found

    async def versions(self) -> list[Version]:
        """All versions, the newest first."""
        found: list[Version] = await self._run(self._wrapped.versions)
        return found

    async def at(self, version: int | str) -> Self:
        """This table as it was at a version, or at a tag."""
        found: Self = await self._run(self._wrapped.at, version)
        return found

    async def restore(self, version: int | str) -> Self:
        """Make an old version, or that of a tag, the newest."""
        found: Self = await self._run(self._wrapped.restore, version)
        return found

    async def tags(self) -> dict[str, Tag]:
        found: dict[str, Tag] = await self._run(self._wrapped.tags)
        return found

    async def create_tag(self, name: str, version: int | None = None) -> Self:
        """Name a version, the newest one unless it is given."""
        found: Self = await self._run(self._wrapped.create_tag, name, version)
        return found

    async def update_tag(self, name: str, version: int) -> Self:
        found: Self = await self._run(self._wrapped.update_tag, name, version)
        return found

    async def drop_tag(self, name: str) -> Self:
        found: Self = await self._run(self._wrapped.drop_tag, name)
        return found

    async def branches(self) -> dict[str, Branch]:
        found: dict[str, Branch] = await self._run(self._wrapped.branches)
        return found

    async def create_branch(self, name: str, version: int | None = None) -> Self:
        """Make a branch of this version, or of the newest one; returns the table on it."""
        found: Self = await self._run(self._wrapped.create_branch, name, version)
        return found

    async def branch(self, name: str) -> Self:
        """This table on a branch."""
        found: Self = await self._run(self._wrapped.branch, name)
        return found

    async def drop_branch(self, name: str) -> Self:
        found: Self = await self._run(self._wrapped.drop_branch, name)
        return found

    async def create_index(
        self, column: str, index_type: str, **options: Unpack[IndexOptions]
    ) -> Self:
        """Index a column: `IVF_FLAT`, `IVF_PQ` … for vectors, `FTS` for text, `BTREE` … for others.

        Options are those of the type, such as `distance_type`, `num_partitions`, `with_position`.
        """
        found: Self = await self._run(self._wrapped.create_index, column, index_type, **options)
        return found

    async def indexes(self) -> list[Index]:
        found: list[Index] = await self._run(self._wrapped.indexes)
        return found

    async def drop_index(self, name: str) -> Self:
        found: Self = await self._run(self._wrapped.drop_index, name)
        return found

    async def compact(self) -> CompactionResult:
        """Merge small files, and leave deleted rows out of them; no value changes.

        The server works in pieces, so others read and write meanwhile, and whoever stops in the
        middle has what was done until then.
        """
        found: CompactionResult = await self._run(self._wrapped.compact)
        return found

    async def set_upkeep(
        self,
        *,
        compact: bool = True,
        small_fragments: int = 20,
        deleted_share: float = 0.1,
        older_than: datetime.timedelta | None = None,
        keep_versions: int | None = None,
    ) -> UpkeepPolicy:
        """Let the server keep it small from now on, in place of a policy that it has.

        compact: merge files, when so many small ones (`small_fragments`) lie side by side, or when
            this share of a file's rows is deleted.
        older_than: remove versions that were replaced so long ago, an hour or more.
        keep_versions: leave the newest so many in any case; alone, remove all others.
        """
        found: UpkeepPolicy = await self._run(
            self._wrapped.set_upkeep,
            compact=compact,
            small_fragments=small_fragments,
            deleted_share=deleted_share,
            older_than=older_than,
            keep_versions=keep_versions,
        )
        return found

    async def upkeep(self) -> UpkeepPolicy | None:
        """The policy by which the server keeps it small; None if it has none."""
        found: UpkeepPolicy | None = await self._run(self._wrapped.upkeep)
        return found

    async def end_upkeep(self) -> None:
        """Let the server not keep it small any more."""
        await self._run(self._wrapped.end_upkeep)

    async def cleanup(
        self,
        *,
        older_than: datetime.timedelta = WEEK,
        keep_versions: int = 1,
        dry_run: bool = False,
    ) -> CleanupResult:
        """Remove versions that were replaced so long ago, and the files that only they had.

        The newest `keep_versions` stay in any case, and so does what a tag, a branch, a column, a
        view, a job or kept work needs.
        """
        found: CleanupResult = await self._run(
            self._wrapped.cleanup,
            older_than=older_than,
            keep_versions=keep_versions,
            dry_run=dry_run,
        )
        return found
