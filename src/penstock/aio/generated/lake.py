"""Lake of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from penstock.aio.wrapping import Awaited
from penstock.sdk.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal

    from lance.namespace import RestNamespace
    from lancedb.db import DBConnection
    from pyiceberg.catalog.rest import RestCatalog

    from penstock.aio.generated.iceberg_table import AsyncIcebergTable
    from penstock.aio.generated.iceberg_view import AsyncIcebergView
    from penstock.aio.generated.job import AsyncJob
    from penstock.aio.generated.query import AsyncQuery
    from penstock.aio.generated.readable import AsyncReadable
    from penstock.aio.generated.registered_function import AsyncRegisteredFunction
    from penstock.aio.generated.table import AsyncTable
    from penstock.aio.generated.view import AsyncView
    from penstock.sdk.connection.names import Name
    from penstock.sdk.contents.contents import IfExists
    from penstock.sdk.functions.declared import Chunker, Udf, Udtf
    from penstock.sdk.rows.reading import Data
    from penstock.sdk.rows.types import Schema
    from penstock.sdk.sql_result import SqlResult
    from penstock.sdk.views.create import Source


class AsyncLake(Awaited[Lake], of=Lake):
    """A connection to a server; `penstock.connect` makes one. Threads may share it."""

    @property
    def url(self) -> str:
        found: str = self._wrapped.url
        return found

    @property
    def why(self) -> str:
        """What made this server the one; empty where its address was given."""
        found: str = self._wrapped.why
        return found

    async def sql(
        self,
        statement: str,
        *,
        namespace: Name | None = None,
        limit: int | None = None,
        timeout: float | None = None,
        dialect: str = "spark",
    ) -> SqlResult:
        """Run a query over tables and views, and return its rows; nothing is stored.

        namespace: where single names are looked up before the root.
        limit: keep so many rows.
        timeout: give up after so many seconds.
        """
        found: SqlResult = await self._run(
            self._wrapped.sql,
            statement,
            namespace=namespace,
            limit=limit,
            timeout=timeout,
            dialect=dialect,
        )
        return found

    async def job(self, id: str) -> AsyncJob:
        """A job that exists, by its id or by as much of the beginning as tells it from others."""
        found: AsyncJob = await self._run(self._wrapped.job, id)
        return found

    async def jobs(
        self,
        *,
        status: str | None = None,
        kind: str | None = None,
        table: Name | None = None,
        limit: int | None = 100,
    ) -> list[AsyncJob]:
        """The newest jobs, at most so many; None is all.

        status: as of `Job.status`, in any case, or `in_progress` for all that wait or run.
        table: the table or view that they work on.
        """
        found: list[AsyncJob] = await self._run(
            self._wrapped.jobs, status=status, kind=kind, table=table, limit=limit
        )
        return found

    def namespace_client(self) -> RestNamespace:
        """pylance's client, for `lance.dataset(namespace_client=…, table_id=[…])`."""
        found: RestNamespace = self._now(self._wrapped.namespace_client)
        return found

    def lancedb(self) -> DBConnection:
        """A connection of lancedb to the same server."""
        found: DBConnection = self._now(self._wrapped.lancedb)
        return found

    def iceberg_catalog(self, name: str = "penstock", **properties: str) -> RestCatalog:
        """pyiceberg's catalog of the Iceberg tables and views."""
        found: RestCatalog = self._now(self._wrapped.iceberg_catalog, name, **properties)
        return found

    async def readiness(self) -> dict[str, str]:
        """Whether the server can work: `status`, and what is wrong with which part."""
        found: dict[str, str] = await self._run(self._wrapped.readiness)
        return found

    async def close(self) -> None:
        """Close the connection; a server that it started goes on until this process ends."""
        await self._run(self._wrapped.close)

    async def views(
        self,
        namespace: Name | None = None,
        *,
        kind: Literal["materialized", "iceberg"] = "materialized",
    ) -> list[str]:
        """The names of all views of a kind, or of those directly in a namespace."""
        found: list[str] = await self._run(self._wrapped.views, namespace, kind=kind)
        return found

    async def view(self, name: Name) -> AsyncView:
        """A materialized view that exists."""
        found: AsyncView = await self._run(self._wrapped.view, name)
        return found

    async def create_view(
        self,
        name: Name,
        source: Source | AsyncReadable | AsyncQuery,
        *,
        chunker: Chunker[..., Any] | type[Any] | AsyncRegisteredFunction | str | None = None,
        udtf: Udtf[..., Any] | type[Any] | AsyncRegisteredFunction | str | None = None,
        dialect: str = "spark",
        output_schema: Schema = None,
        with_data: bool = False,
        wait: bool = True,
        progress: bool | None = None,
        auto_refresh: bool = False,
        target_lag_seconds: int | None = None,
        refresh_schedule: str | None = None,
        refresh_schedule_timezone: str | None = None,
        if_exists: IfExists = "error",
    ) -> AsyncView:
        """Make a materialized view; it is empty until `refresh`, unless `with_data`.

        source: a table, `table.select(…).where(…)`, or SQL in `dialect`.
        chunker, udtf: the function that makes the rows of what the source gives, or the name of a
            registered one. Of a selection, a
            chunker's view inherits the selected columns; of a table, those that it does not read.
        output_schema: the columns, where the query alone does not tell their types.
        with_data: fill it at once; waits for that unless `wait=False`.
        refresh_schedule: a cron expression, as in `"0 6 * * *"`, in UTC or in the time zone that is
            named.
        if_exists: `ok` leaves a view of that name as it is, `replace` alters it, if it is not this
            one already.
        """
        found: AsyncView = await self._run(
            self._wrapped.create_view,
            name,
            source,
            chunker=chunker,
            udtf=udtf,
            dialect=dialect,
            output_schema=output_schema,
            with_data=with_data,
            wait=wait,
            progress=progress,
            auto_refresh=auto_refresh,
            target_lag_seconds=target_lag_seconds,
            refresh_schedule=refresh_schedule,
            refresh_schedule_timezone=refresh_schedule_timezone,
            if_exists=if_exists,
        )
        return found

    async def drop_view(
        self, name: Name, *, missing_ok: bool = False, cascade: bool = False, force: bool = False
    ) -> None:
        """Drop a materialized view; see `View.drop`."""
        await self._run(
            self._wrapped.drop_view, name, missing_ok=missing_ok, cascade=cascade, force=force
        )

    async def iceberg_view(self, name: Name) -> AsyncIcebergView:
        """An Iceberg view that exists."""
        found: AsyncIcebergView = await self._run(self._wrapped.iceberg_view, name)
        return found

    async def create_iceberg_view(
        self,
        name: Name,
        source: Source | AsyncReadable | AsyncQuery,
        *,
        dialect: str = "spark",
        if_exists: IfExists = "error",
    ) -> AsyncIcebergView:
        """Give a query a name; it is run whenever the view is read.

        source: SQL in `dialect`, or a table or a selection of one, which becomes Spark's SQL if
            that is sure to mean the same.
        if_exists: `ok` leaves a view of that name as it is, `replace` gives it this query, if it is
            not its own already.
        """
        found: AsyncIcebergView = await self._run(
            self._wrapped.create_iceberg_view, name, source, dialect=dialect, if_exists=if_exists
        )
        return found

    async def drop_iceberg_view(
        self, name: Name, *, missing_ok: bool = False, cascade: bool = False, force: bool = False
    ) -> None:
        """Drop an Iceberg view; see `IcebergView.drop`."""
        await self._run(
            self._wrapped.drop_iceberg_view,
            name,
            missing_ok=missing_ok,
            cascade=cascade,
            force=force,
        )

    async def namespaces(self, namespace: Name | None = None) -> list[str]:
        """The names of all namespaces, or of those directly in one; `""` is the root."""
        found: list[str] = await self._run(self._wrapped.namespaces, namespace)
        return found

    async def create_namespace(
        self,
        name: Name,
        *,
        properties: Mapping[str, str] | None = None,
        if_exists: Literal["error", "ok"] = "error",
    ) -> None:
        """Make a namespace, and those that it is to be in as far as they are missing."""
        await self._run(
            self._wrapped.create_namespace, name, properties=properties, if_exists=if_exists
        )

    async def drop_namespace(
        self, name: Name, *, missing_ok: bool = False, cascade: bool = False
    ) -> None:
        """Drop a namespace; `cascade` with everything in it, and with views that read it."""
        await self._run(self._wrapped.drop_namespace, name, missing_ok=missing_ok, cascade=cascade)

    async def open(
        self, name: Name
    ) -> AsyncTable | AsyncView | AsyncIcebergView | AsyncIcebergTable:
        """The table or view of this name, whatever kind it is of."""
        found: AsyncTable | AsyncView | AsyncIcebergView | AsyncIcebergTable = await self._run(
            self._wrapped.open, name
        )
        return found

    async def exists(self, name: Name) -> bool:
        """Whether there is a table or view of this name, of any kind."""
        found: bool = await self._run(self._wrapped.exists, name)
        return found

    async def tables(
        self, namespace: Name | None = None, *, kind: Literal["lance", "iceberg"] = "lance"
    ) -> list[str]:
        """The names of all tables of a kind, or of those directly in a namespace."""
        found: list[str] = await self._run(self._wrapped.tables, namespace, kind=kind)
        return found

    async def table(self, name: Name) -> AsyncTable:
        """A table that exists."""
        found: AsyncTable = await self._run(self._wrapped.table, name)
        return found

    async def iceberg_table(self, name: Name) -> AsyncIcebergTable:
        """An Iceberg table that exists."""
        found: AsyncIcebergTable = await self._run(self._wrapped.iceberg_table, name)
        return found

    async def create_table(
        self,
        name: Name,
        data: Data = None,
        schema: Schema = None,
        *,
        if_exists: IfExists = "error",
        properties: Mapping[str, str] | None = None,
    ) -> AsyncTable:
        """Make a table of whatever holds rows, which are sent while they are read.

        data: an Arrow table, reader or dataset, a DataFrame of any library, a list of dicts, a dict
            of columns, an array of vectors, a generator of dicts or batches, or the paths of CSV,
            JSON lines, Parquet or Arrow files: files, folders, patterns, `s3://…`.
        schema: types for columns that need one, such as `{"vector": penstock.vector(256)}`. Without
            data, all columns of an empty table.
        if_exists: `ok` leaves a table of that name as it is, `replace` gives it these columns and
            rows as a new version.
        """
        found: AsyncTable = await self._run(
            self._wrapped.create_table,
            name,
            data,
            schema,
            if_exists=if_exists,
            properties=properties,
        )
        return found

    async def drop_table(
        self, name: Name, *, missing_ok: bool = False, cascade: bool = False, force: bool = False
    ) -> None:
        """Drop a table with its files; see `Table.drop`."""
        await self._run(
            self._wrapped.drop_table, name, missing_ok=missing_ok, cascade=cascade, force=force
        )

    async def functions(self, namespace: Name | None = None) -> list[str]:
        """The names of all functions, or of those directly in a namespace."""
        found: list[str] = await self._run(self._wrapped.functions, namespace)
        return found

    async def function(self, name: Name) -> AsyncRegisteredFunction:
        """A function that exists, as in `ml.embed`, or one version of it, as in `ml.embed@2`."""
        found: AsyncRegisteredFunction = await self._run(self._wrapped.function, name)
        return found

    async def create_function(
        self,
        name: Name,
        function: Udf[..., Any] | Chunker[..., Any] | Udtf[..., Any] | type[Any],
        *,
        secrets: Mapping[str, str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> AsyncRegisteredFunction:
        """Register a decorated function under a name; returns its version, a new one if it differs.

        `secrets` are names of secrets, by the environment variables that it finds them in.
        """
        found: AsyncRegisteredFunction = await self._run(
            self._wrapped.create_function, name, function, secrets=secrets, properties=properties
        )
        return found

    async def drop_function(self, name: Name, *, missing_ok: bool = False) -> None:
        """Drop a function, or the version that the name says; see `RegisteredFunction.drop`."""
        await self._run(self._wrapped.drop_function, name, missing_ok=missing_ok)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()
