"""Alter materialized views, explain that, and tell what they were."""

import datetime
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.wire import path_of
from penstock.sdk.functions.declared import Chunker, Udtf
from penstock.sdk.functions.packing import encode_schema, udtf_spec
from penstock.sdk.functions.registered import RegisteredFunction, read_function
from penstock.sdk.jobs.job import Job, follow_job
from penstock.sdk.jobs.plans import Plan
from penstock.sdk.rows.types import Schema, read_schema
from penstock.sdk.show import show_time, to_time
from penstock.sdk.tables.handle import Handle
from penstock.sdk.views.create import RowsFunction, Source, named_spec, source_query


class Unset:
    """Stands for what is not given, where None means something."""

    def __repr__(self) -> str:
        return "…"


UNSET = Unset()
UNSETTABLE = ("target_lag_seconds", "refresh_schedule")


@dataclass(frozen=True)
class ViewDefinition:
    """A definition that a view has, or has had."""

    edition: int
    # The first version of the view that was made by it.
    version: int
    created_at: datetime.datetime
    kind: str
    query: str
    # What was sent differently than for the definition before.
    changed: list[str]
    inherited: list[str] | str | None = None
    # The name and version of the function that makes its rows.
    function: str | None = None
    created_by: str | None = None
    job_id: str | None = None
    output_schema: str | None = None

    def __str__(self) -> str:
        by = f" by {self.created_by}" if self.created_by else ""
        what = f", changed {', '.join(self.changed)}" if self.changed else ""
        return f"from version {self.version} on, {show_time(self.created_at)}{by}{what}"


class Alterable(Handle):
    """What can be changed about a view."""

    def alter(
        self,
        query: Source | None = None,
        *,
        function: "RowsFunction | RegisteredFunction | str | None" = None,
        inherited: list[str] | str | None = None,
        output_schema: Schema = None,
        dialect: str = "spark",
        auto_refresh: bool | None = None,
        target_lag_seconds: int | Unset | None = UNSET,
        refresh_schedule: str | Unset | None = UNSET,
        refresh_schedule_timezone: str | None = None,
        properties: dict[str, str | None] | None = None,
        cluster: str | None = None,
        preview: bool = True,
        wait: bool = True,
        progress: bool | None = None,
    ) -> Job | None:
        """Change the view, and leave what is not given as it is; returns the job, if it takes one.

        query: a table, a selection, or SQL in `dialect`, as for `create_view`.
        function: another chunker or udtf, of the view's kind, or the name of a registered one.
        inherited: of a chunker's view, the query's columns that its rows have.
        auto_refresh: whether it refreshes itself after changes; False takes a target lag away, too.
        target_lag_seconds: within which it refreshes itself; None takes it away.
        refresh_schedule: a cron expression, in UTC or in the time zone that is named; None ends it.
        properties: properties of the table; None as a value removes one.
        preview: first have a runner give some rows to functions that are new; when they fail, the
            call does, and nothing changes. `job.not_previewed` says why no runner did.
        """
        body = self._body(query, function, inherited, output_schema, dialect)
        body |= {} if preview else {"preview": False}
        body |= _read_settings(
            auto_refresh=auto_refresh,
            target_lag_seconds=target_lag_seconds,
            refresh_schedule=refresh_schedule,
            refresh_schedule_timezone=refresh_schedule_timezone,
            properties=properties,
            cluster=cluster,
        )
        return send_alteration(self, body, wait=wait, progress=progress)

    def explain_alter(
        self,
        query: Source | None = None,
        *,
        function: "RowsFunction | RegisteredFunction | str | None" = None,
        inherited: list[str] | str | None = None,
        output_schema: Schema = None,
        dialect: str = "spark",
    ) -> Plan:
        """What altering the view so would cost, without doing it."""
        body = self._body(query, function, inherited, output_schema, dialect)
        told = self._wire.read(path_of("materialized_view", self.id, "explain_alter"), body)
        return Plan(f"alteration of {self.name}", told)

    def _body(
        self,
        query: Source | None,
        function: "RowsFunction | RegisteredFunction | str | None",
        inherited: list[str] | str | None,
        output_schema: Schema,
        dialect: str,
    ) -> dict[str, Any]:
        if not isinstance(function, str | RegisteredFunction):
            return alteration_body(self.id, query, function, inherited, output_schema, dialect)
        body = alteration_body(self.id, query, None, inherited, output_schema, dialect)
        return body | {"udtf_spec": named_spec(read_function(self._wire, function))}

    def history(self) -> list[ViewDefinition]:
        """The definitions that the view has had, newest first."""
        path = path_of("materialized_view", self.id, "history")

        def ask(token: str | None) -> Any:
            return self._wire.read(path, params={"page_token": token})

        pages = self._wire.pages(ask, "definitions")
        return [_read_definition(each) for page in pages for each in page]


def alteration_body(
    view: Identifier,
    query: Source | None,
    function: "RowsFunction | None",
    inherited: list[str] | str | None,
    output_schema: Schema,
    dialect: str,
) -> dict[str, Any]:
    """The part of a request that defines the view."""
    body: dict[str, Any] = {}
    if query is not None:
        body["source_query"] = source_query(query, view, dialect)
    if function is not None:
        if not isinstance(function, Chunker | Udtf):
            raise InvalidRequest(
                f"the function is {function!r}",
                detail="decorate it with @penstock.chunker or @penstock.udtf",
            )
        body["kind"] = "chunker" if isinstance(function, Chunker) else "udtf"
        body["udtf_spec"] = udtf_spec(function)
    if inherited is not None:
        body["inherited"] = [inherited] if isinstance(inherited, str) else list(inherited)
    if output_schema is not None:
        body["output_schema"] = encode_schema(read_schema(output_schema, "output_schema"))
    return body


def send_alteration(
    view: Handle, body: dict[str, Any], *, wait: bool, progress: bool | None
) -> Job | None:
    """Request an alteration, and wait for its job if it takes one."""
    told = view._wire.change(path_of("materialized_view", view.id, "alter"), body)
    if told.get("job_id") is None:
        return None
    untried = told.get("not_previewed", "")
    return follow_job(
        view._wire, told["job_id"], wait=wait, progress=progress, not_previewed=untried
    )


def _read_settings(**given: Any) -> dict[str, Any]:
    """The settings that are given; None means something to those that can be unset."""
    return {
        name: value
        for name, value in given.items()
        if not isinstance(value, Unset) and (value is not None or name in UNSETTABLE)
    }


def _read_definition(told: dict[str, Any]) -> ViewDefinition:
    return ViewDefinition(
        edition=told["edition"],
        version=told["version"],
        created_at=to_time(told["made_at"]),
        kind=told["kind"],
        query=told["source_query"],
        changed=told.get("changed", []),
        inherited=told.get("inherited"),
        function=told.get("function"),
        created_by=told.get("made_by"),
        job_id=told.get("job_id"),
        output_schema=told.get("output_schema"),
    )
