"""The views of a lake: materialized ones, and Iceberg's."""

from typing import Any, Literal

from penstock.errors import InvalidRequest, TableAlreadyExists
from penstock.sdk.connection.names import Name, read_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.contents.contents import MODES, IfExists, check_word, missing
from penstock.sdk.contents.tables import Tables
from penstock.sdk.functions.declared import Chunker, Udtf
from penstock.sdk.functions.registered import RegisteredFunction
from penstock.sdk.jobs.job import follow_job
from penstock.sdk.rows.types import Schema
from penstock.sdk.views.altering import send_alteration
from penstock.sdk.views.create import Source, choose_function, source_query, view_body
from penstock.sdk.views.iceberg_views import IcebergView
from penstock.sdk.views.view import View

# What the server calls each kind.
KINDS = {"materialized": "materialized_view", "iceberg": "view"}


class Views(Tables):
    """What a lake does with views."""

    def views(
        self,
        namespace: Name | None = None,
        *,
        kind: Literal["materialized", "iceberg"] = "materialized",
    ) -> list[str]:
        """The names of all views of a kind, or of those directly in a namespace."""
        check_word("kind", kind, *KINDS)
        return self._names(namespace, KINDS[kind])

    def view(self, name: Name) -> View:
        """A materialized view that exists."""
        found = self._open_stored(name)
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
        if_exists: IfExists = "error",
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
        if_exists: `ok` leaves a view of that name as it is, `replace` alters it, if it is not this
            one already.
        """
        check_word("if_exists", if_exists, *MODES)
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
            if if_exists == "error":
                raise
            view = self.view(id)
            if if_exists == "replace":
                send_alteration(view, body, wait=wait, progress=progress)
            return view
        if with_data and wait:
            follow_job(self._wire, told["job_id"], wait=True, progress=progress)
        return View(self._wire, id)

    def drop_view(
        self,
        name: Name,
        *,
        missing_ok: bool = False,
        cascade: bool = False,
        force: bool = False,
    ) -> None:
        """Drop a materialized view; see `View.drop`."""
        with missing(missing_ok):
            View(self._wire, read_id(name)).drop(cascade=cascade, force=force)

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
        if_exists: IfExists = "error",
    ) -> IcebergView:
        """Give a query a name; it is run whenever the view is read.

        source: SQL in `dialect`, or a table or a selection of one, which becomes Spark's SQL if
            that is sure to mean the same.
        if_exists: `ok` leaves a view of that name as it is, `replace` gives it this query, if it is
            not its own already.
        """
        check_word("if_exists", if_exists, *MODES)
        view = IcebergView(self._wire, read_id(name))
        query = source_query(source, view.id, dialect)
        try:
            self._wire.change(view._path("create"), {"query": query, "dialect": dialect})
        except TableAlreadyExists:
            if if_exists == "error":
                raise
            view.describe()
            if if_exists == "replace":
                view.alter(query, dialect=dialect)
        return view

    def drop_iceberg_view(
        self,
        name: Name,
        *,
        missing_ok: bool = False,
        cascade: bool = False,
        force: bool = False,
    ) -> None:
        """Drop an Iceberg view; see `IcebergView.drop`."""
        with missing(missing_ok):
            IcebergView(self._wire, read_id(name)).drop(cascade=cascade, force=force)
