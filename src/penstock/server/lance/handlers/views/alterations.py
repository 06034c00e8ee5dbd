"""Operations that alter materialized views, explain that, and tell what they were."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.functions import binding
from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.waiting import CallerLeft
from penstock.catalog.materialized_views import (
    alterations,
    definition_history,
    materialized_views,
    view_description,
)
from penstock.catalog.materialized_views.alterations import ViewAlteration
from penstock.catalog.materialized_views.cron import Schedule, read_schedule
from penstock.catalog.materialized_views.definition_history import PastDefinition
from penstock.catalog.materialized_views.pending_alterations import Settings
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.model.identifiers import to_path
from penstock.model.paging import request_page
from penstock.server.lance.call import Body, Call, Text
from penstock.server.lance.handlers.job_stream import watched
from penstock.server.lance.handlers.materialized_views import Lag, Query, Schema
from penstock.server.transport.http import ClientGone, Reply

MAX_COLUMNS = 10_000
Names = Annotated[list[Text], msgspec.Meta(max_length=MAX_COLUMNS)]


class AlterView(Body):
    # A definition: what is not sent stays as it is.
    kind: str | None = None
    source_query: Query | None = None
    output_schema: Schema | msgspec.UnsetType | None = msgspec.UNSET
    udtf_spec: dict[str, Any] | None = None
    inherited: Names | None = None
    cluster: str | None = None
    # False: new functions are not tried before.
    preview: bool | None = None
    # Settings; a property of null is removed.
    auto_refresh: bool | msgspec.UnsetType = msgspec.UNSET
    target_lag_seconds: Lag | msgspec.UnsetType | None = msgspec.UNSET
    refresh_schedule: Text | msgspec.UnsetType | None = msgspec.UNSET
    refresh_schedule_timezone: Text | None = None
    properties: dict[Text, Text | None] | None = None


class AlteredView(msgspec.Struct, omit_defaults=True):
    properties: dict[str, str]
    # The job that alters it; without one it is altered.
    job_id: str | None = None
    # Why new functions were not tried before.
    not_previewed: str | None = None


class ShownDefinition(msgspec.Struct, omit_defaults=True):
    edition: int
    version: int
    made_at: int
    kind: str
    source_query: str
    changed: list[str]
    output_schema: str | None = None
    inherited: list[str] | None = None
    function: str | None = None
    made_by: str | None = None
    job_id: str | None = None


class ListHistory(Body):
    limit: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    page_token: str | None = None


class ViewHistory(msgspec.Struct, omit_defaults=True):
    definitions: list[ShownDefinition]
    page_token: str | None = None


_alter = msgspec.json.Decoder(AlterView)
_history = msgspec.json.Decoder(ListHistory)


async def alter(call: Call) -> Reply:
    wanted = await _read(call)
    if not wanted.defines and wanted.settings == Settings():
        raise InvalidRequest(
            "nothing is to be altered",
            detail="send source_query, udtf_spec, inherited, output_schema, auto_refresh, "
            "target_lag_seconds, refresh_schedule or properties",
        )
    view = await materialized_views.get(call.catalog.database, call.id)
    async with watched(call) as leaving:
        try:
            done = await alterations.alter(call.catalog, view, wanted, call.origin, leaving)
        except CallerLeft as error:
            raise ClientGone from error
    return await _show(call, done.job_id, done.untried)


async def explain(call: Call) -> Reply:
    wanted = await _read(call)
    view = await materialized_views.get(call.catalog.database, call.id)
    plan = await alterations.explain(call.catalog, view, wanted, call.origin)
    return Reply(200, msgspec.json.encode(plan))


async def history(call: Call) -> ViewHistory:
    body = call.decode(_history)
    view = await materialized_views.get(call.catalog.database, call.id)
    scope = f"view definitions:{to_path(call.id)}"
    if body.limit is None and body.page_token is None:
        page = call.page(scope)
    else:
        page = request_page(scope, body.page_token, body.limit, call.max_page)
    found = await definition_history.list_definitions(call.catalog, view, page)
    return ViewHistory([_show_definition(each) for each in found.items], found.token)


async def recover_altered(call: Call, id: str) -> Reply:
    """The view as it is now, and the job if there was one: altering again could undo a change."""
    job = await jobs.find(call.catalog.database, id)
    return await _show(call, None if job is None else id)


async def _show(call: Call, job_id: str | None, untried: str = "") -> Reply:
    view = await materialized_views.get(call.catalog.database, call.id)
    told = await view_description.describe(call.catalog, view, call.origin)
    body = AlteredView({**view.table.properties, **told}, job_id, untried or None)
    return Reply(200 if job_id is None else 202, msgspec.json.encode(body))


def _show_definition(past: PastDefinition) -> ShownDefinition:
    inherited = past.asked.inherited
    return ShownDefinition(
        edition=past.edition,
        version=past.version,
        made_at=past.made_at,
        kind=past.asked.kind,
        source_query=past.asked.source_query,
        changed=list(past.changed),
        output_schema=past.asked.output_schema,
        inherited=None if inherited is None else list(inherited),
        function=past.function,
        made_by=past.made_by or None,
        job_id=past.job_id or None,
    )


async def _read(call: Call) -> ViewAlteration:
    body = call.decode(_alter)
    body.udtf_spec = await binding.fill_spec(call.catalog, body.udtf_spec, call.origin)
    properties = body.properties or {}
    tables.check_client_properties(properties)
    return ViewAlteration(
        kind=body.kind,
        source_query=body.source_query,
        output_schema=body.output_schema,
        udtf_spec=body.udtf_spec,
        inherited=None if body.inherited is None else tuple(body.inherited),
        settings=Settings(
            body.auto_refresh, body.target_lag_seconds, _read_schedule(body), properties
        ),
        cluster=body.cluster,
        preview=body.preview is not False,
    )


def _read_schedule(body: AlterView) -> Schedule | msgspec.UnsetType | None:
    is_unset = body.refresh_schedule is msgspec.UNSET
    expression = None if body.refresh_schedule is msgspec.UNSET else body.refresh_schedule
    given = read_schedule(expression, body.refresh_schedule_timezone)
    return msgspec.UNSET if is_unset else given
