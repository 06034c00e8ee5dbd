"""A lake: everything that one server has."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from penstock.errors import InvalidRequest, NotFound, TableAlreadyExists, TableNotFound
from penstock.model.identifiers import from_path
from penstock.sdk.connection import other_clients
from penstock.sdk.connection.names import Name, read_id, show_id
from penstock.sdk.connection.wire import Wire, path_of
from penstock.sdk.functions.declared import Chunker, Udf, Udtf
from penstock.sdk.functions.registered import RegisteredFunction, read_function, registration
from penstock.sdk.jobs.job import Job
from penstock.sdk.show import html_table
from penstock.sdk.sql_result import SqlResult
from penstock.sdk.tables.arrow import Data, Schema, ask_rows, to_stream
from penstock.sdk.tables.iceberg_table import IcebergTable
from penstock.sdk.tables.table import Table
from penstock.sdk.views.altering import send_alteration
from penstock.sdk.views.create import Source, choose_function, source_query, view_body
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View, is_view

if TYPE_CHECKING:
    from lance.namespace import RestNamespace
    from lancedb.db import DBConnection
    from pyiceberg.catalog.rest import RestCatalog

IfExists = Literal["error", "ok", "overwrite"]
TABLE_LISTS = {"lance": "table/list", "iceberg": "iceberg_table/list"}
VIEW_LISTS = {"materialized": "materialized_view/list", "iceberg": "view/list"}
MODES = {"error": "create", "ok": "exist_ok", "overwrite": "overwrite"}


class Lake:
    """A connection to a server; `penstock.connect` makes one. Threads may share it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @property
    def url(self) -> str:
        return self._wire.url

    # Namespaces

    def namespaces(self, parent: Name = "") -> list[str]:
        """The names of the namespaces directly below one, or at the root."""
        found = self._list(path_of("namespace", read_id(parent), "list"), "namespaces")
        return [show_id((each,)) for each in found]

    def create_namespace(
        self, name: Name, *, if_exists: Literal["error", "ok"] = "error", **properties: str
    ) -> "Lake":
        body = {"mode": _mode(if_exists), "properties": properties}
        self._wire.change(path_of("namespace", read_id(name), "create"), body)
        return self

    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Drop a namespace; `cascade` with everything in it, and with views that read it."""
        body = {"behavior": "cascade" if cascade else "restrict"}
        self._wire.change(path_of("namespace", read_id(name), "drop"), body, cascade=cascade)

    # Tables

    def tables(
        self, namespace: Name | None = None, *, kind: Literal["lance", "iceberg"] = "lance"
    ) -> list[str]:
        """The names of all Lance tables and views, or of the tables of a kind in a namespace."""
        if namespace is not None or kind != "lance":
            return self._names(namespace or "", "tables", TABLE_LISTS, kind)
        return [show_id(from_path(each)) for each in self._list("/v1/table", "tables")]

    def table(self, name: Name) -> Table:
        """A table, or a view, that exists."""
        id = read_id(name)
        told = self._wire.read(path_of("table", id, "describe"))
        return (View if is_view(told["properties"]) else Table)(self._wire, id)

    __getitem__ = table

    def iceberg_table(self, name: Name) -> IcebergTable:
        """An Iceberg table that exists."""
        found = IcebergTable(self._wire, read_id(name))
        found.describe()
        return found

    def __contains__(self, name: Name) -> bool:
        try:
            self._wire.read(path_of("table", read_id(name), "exists"))
        except NotFound:
            return False
        return True

    def create_table(
        self,
        name: Name,
        data: Data,
        schema: Schema = None,
        *,
        if_exists: IfExists = "error",
        properties: dict[str, str] | None = None,
    ) -> Table:
        """Make a table of data: Arrow, a DataFrame, dicts, columns by name, or Parquet paths.

        `schema` has types for columns that need one, such as `{"vector": penstock.vector(256)}`.
        """
        id = read_id(name)
        told = msgspec.json.encode(properties).decode() if properties else None
        path = path_of("table", id, "create")
        self._wire.upload(path, to_stream(data, schema), mode=_mode(if_exists), properties=told)
        return Table(self._wire, id)

    def drop_table(
        self,
        name: Name,
        *,
        missing_ok: bool = False,
        cascade: bool = False,
        force: bool = False,
    ) -> None:
        """Drop a table with its files; views that read it refuse this.

        `cascade` takes them along, `force` lets them break.
        """
        try:
            Table(self._wire, read_id(name))._note("drop", None, cascade=cascade, force=force)
        except TableNotFound:
            if not missing_ok:
                raise

    def rename_table(
        self, name: Name, new: Name, *, cascade: bool = False, force: bool = False
    ) -> Table:
        """Give a table another full name, which says its namespace; see `Table.rename`."""
        return Table(self._wire, read_id(name)).rename(read_id(new), cascade=cascade, force=force)

    # Views

    def views(
        self, namespace: Name = "", *, kind: Literal["materialized", "iceberg"] = "materialized"
    ) -> list[str]:
        """The names of the views of a kind in a namespace."""
        return self._names(namespace, "views", VIEW_LISTS, kind)

    def view(self, name: Name) -> View:
        found = self.table(name)
        if not isinstance(found, View):
            raise InvalidRequest(
                f"{found.name} is no materialized view", detail="use lake.table for tables"
            )
        return found

    def create_view(
        self,
        name: Name,
        source: Source,
        *,
        chunker: Chunker[..., Any] | type[Any] | RegisteredFunction | str | None = None,
        udtf: Udtf[..., Any] | type[Any] | RegisteredFunction | str | None = None,
        dialect: str = "spark",
        output_schema: Schema = None,
        with_data: bool = False,
        wait: bool = True,
        progress: bool | None = None,
        auto_refresh: bool = False,
        target_lag_seconds: int | None = None,
        refresh_schedule: str | None = None,
        refresh_schedule_timezone: str | None = None,
        if_exists: Literal["error", "replace"] = "error",
    ) -> View:
        """Make a materialized view; it is empty until `refresh`, unless `with_data`.

        source: a table, `table.select(…).where(…)`, or SQL in `dialect`.
        chunker, udtf: the function that makes the rows of what the source gives, or the name of a
            registered one. Of a selection, a
            chunker's view inherits the selected columns; of a table, those that it does not read.
        output_schema: the columns, where the query alone does not tell their types.
        with_data: fill it at once; waits for that unless `wait=False`.
        refresh_schedule: a cron expression, as in `"0 6 * * *"`, in UTC or in the time zone that is
            named.
        if_exists: `replace` alters a view of that name, if it is not this one already.
        """
        _check_if_exists(if_exists, "error", "replace")
        id = read_id(name)
        body = {
            **view_body(
                source, id, choose_function(self._wire, chunker, udtf), dialect, output_schema
            ),
            "auto_refresh": auto_refresh,
            "target_lag_seconds": target_lag_seconds,
            "refresh_schedule": refresh_schedule,
            "refresh_schedule_timezone": refresh_schedule_timezone,
        }
        wanted = {**body, "with_no_data": not with_data}
        try:
            told = self._wire.change(path_of("materialized_view", id, "create"), wanted)
        except TableAlreadyExists:
            if if_exists != "replace":
                raise
            view = View(self._wire, id)
            send_alteration(view, body, wait=wait, progress=progress)
            return view
        if with_data and wait:
            Job(self._wire, told["job_id"]).wait(progress=progress)
        return View(self._wire, id)

    def rename_view(
        self, name: Name, new: Name, *, cascade: bool = False, force: bool = False
    ) -> View:
        """Give a view another full name, which says its namespace; see `Table.rename`."""
        return self.view(name).rename(read_id(new), cascade=cascade, force=force)

    def drop_view(self, name: Name, *, missing_ok: bool = False, cascade: bool = False) -> None:
        """Drop a view; `cascade` takes views that read it along."""
        try:
            View(self._wire, read_id(name)).drop(cascade=cascade)
        except TableNotFound:
            if not missing_ok:
                raise

    # Functions

    def functions(self, namespace: Name = "") -> list[RegisteredFunction]:
        """All versions of the functions in a namespace, by name and number."""
        parent = read_id(namespace)
        found = self._list(path_of("namespace", parent, "function/list"), "functions")
        told: Iterator[Any] = iter(found)
        return [RegisteredFunction(self._wire, tuple(each["id"]), each["version"]) for each in told]

    def function(self, name: Name) -> RegisteredFunction:
        """A function that exists, as in `ml.embed`, or one version of it, as in `ml.embed@2`."""
        found = read_function(self._wire, name)
        found.describe()
        return found

    def create_function(
        self,
        name: Name,
        function: Udf[..., Any] | Chunker[..., Any] | Udtf[..., Any] | type[Any],
        *,
        secrets: dict[str, str] | None = None,
        properties: dict[str, str] | None = None,
    ) -> RegisteredFunction:
        """Register a decorated function under a name; returns its version, a new one if it differs.

        `secrets` are names of secrets, by the environment variables that it finds them in.
        """
        id = read_id(name)
        body = registration(function, secrets, properties)
        told = self._wire.change(path_of("function", id, "create"), body)
        return RegisteredFunction(self._wire, id, told["function"]["version"])

    # SQL

    def sql(
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
        body = {
            "sql": statement,
            "namespace": None if namespace is None else list(read_id(namespace)),
            "limit": limit,
            "timeout_seconds": timeout,
            "dialect": dialect,
        }
        return SqlResult(ask_rows(self._wire, "/v1/sql", body, timeout))

    # Iceberg views

    def iceberg_view(self, name: Name) -> IcebergView:
        """An Iceberg view that exists."""
        found = IcebergView(self._wire, read_id(name))
        found.describe()
        return found

    def create_iceberg_view(
        self,
        name: Name,
        source: Source,
        *,
        dialect: str = "spark",
        if_exists: Literal["error", "replace"] = "error",
    ) -> IcebergView:
        """Give a query a name; it is run whenever the view is read.

        source: SQL in `dialect`, or a table or a selection of one, which becomes Spark's SQL if
            that is sure to mean the same.
        if_exists: `replace` gives a view of that name this query, if it is not its own already.
        """
        _check_if_exists(if_exists, "error", "replace")
        view = IcebergView(self._wire, read_id(name))
        query = source_query(source, view.id, dialect)
        try:
            self._wire.change(view._path("create"), {"query": query, "dialect": dialect})
        except TableAlreadyExists:
            if if_exists != "replace":
                raise
            view.alter(query, dialect=dialect)
        return view

    # Jobs

    def job(self, id: str) -> Job:
        """A job that exists."""
        self._wire.read("/v1/jobs/describe", {"job_id": id})
        return Job(self._wire, id)

    def jobs(
        self,
        *,
        state: str | None = None,
        kind: str | None = None,
        table: Name | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Jobs, the newest first."""
        body = {
            "state": state,
            "kind": kind,
            "target": None if table is None else "$".join(read_id(table)),
            "limit": limit,
        }
        found = self._wire.read("/v1/jobs/list", body)["jobs"]
        return [Job(self._wire, each["job_id"]) for each in found]

    # Other clients

    def namespace_client(self) -> "RestNamespace":
        """pylance's client, for `lance.dataset(namespace_client=…, table_id=[…])`."""
        return other_clients.namespace_client(self._wire)

    def lancedb(self) -> "DBConnection":
        """A connection of lancedb to the same server."""
        return other_clients.lancedb(self._wire)

    def iceberg_catalog(self, name: str = "penstock", **properties: str) -> "RestCatalog":
        """pyiceberg's catalog of the Iceberg tables and views."""
        return other_clients.iceberg_catalog(self._wire, name, **properties)

    def readiness(self) -> dict[str, str]:
        """Whether the server can work: `status`, and what is wrong with which part."""
        return dict(self._wire.probe("/readyz"))

    def close(self) -> None:
        self._wire.close()

    def __enter__(self) -> "Lake":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Lake at {self.url}>"

    def _repr_html_(self) -> str:
        names = self.tables()
        return html_table(
            f"Lake at {self.url}",
            [(name,) for name in names],
            note=f"{len(names)} tables and views",
        )

    def _names(self, parent: Name, field: str, lists: dict[str, str], kind: str) -> list[str]:
        """What a namespace has of a kind."""
        if kind not in lists:
            known = " or ".join(map(repr, lists))
            raise InvalidRequest(f"kind is {kind!r}", detail=f"use {known}")
        id = read_id(parent)
        found = self._list(path_of("namespace", id, lists[kind]), field)
        return [show_id((*id, each)) for each in found]

    def _list(self, path: str, field: str) -> Iterator[str]:
        pages = self._wire.pages(lambda token: self._wire.get(path, page_token=token), field)
        return (each for page in pages for each in page)


def _mode(if_exists: str) -> str:
    _check_if_exists(if_exists, *MODES)
    return MODES[if_exists]


def _check_if_exists(given: str, *known: str) -> None:
    if given not in known:
        raise InvalidRequest(f"if_exists is {given!r}", detail="use " + ", ".join(map(repr, known)))
