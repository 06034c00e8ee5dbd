"""Operations on materialized views."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.functions import binding
from penstock.catalog.materialized_views import (
    cascades,
    consent_requests,
    materialized_views,
    refreshes,
)
from penstock.catalog.materialized_views import (
    create as view_creating,
)
from penstock.catalog.materialized_views import (
    view_description as view_state,
)
from penstock.catalog.materialized_views.create import ViewCreation
from penstock.catalog.materialized_views.cron import read_schedule
from penstock.catalog.materialized_views.materialized_views import SentDefinition
from penstock.catalog.materialized_views.refreshes import RefreshRequest
from penstock.catalog.names import table_changes, tables
from penstock.errors import InvalidRequest, TableNotFound
from penstock.model.identifiers import to_path
from penstock.model.udtfs import read_kind
from penstock.model.views import Mode
from penstock.server.lance.call import Body, Call, Text, Version
from penstock.server.lance.handlers.backfills import (
    Count,
    CountOrNone,
    QueuedJob,
    Seconds,
    Threads,
    read_sizes,
)
from penstock.server.lance.handlers.tables import RemovedTable, removed_table
from penstock.server.transport.http import Reply

# The range that both databases can store.
Query = Annotated[str, msgspec.Meta(min_length=1, pattern="^[^\\x00]*$")]
Schema = Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")]
Manifest = Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$")]
Lag = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]


class CreateView(Body):
    kind: str | None = None
    source_query: Query | None = None
    output_schema: Schema | None = None
    udtf_spec: dict[str, Any] | None = None
    with_no_data: bool | None = None
    auto_refresh: bool | None = None
    # lancedb's form of all of it.
    query: Query | None = None
    # Beyond the protocol.
    target_lag_seconds: Lag | None = None
    refresh_schedule: Text | None = None
    refresh_schedule_timezone: Text | None = None
    cluster: str | None = None


class RefreshView(Body):
    src_version: Version | None = None
    max_rows_per_fragment: Count | None = None
    concurrency: Count | None = None
    intra_applier_concurrency: Threads | None = None
    source_task_size: CountOrNone | None = None
    cluster: str | None = None
    output_limit: CountOrNone | None = None
    manifest: Manifest | None = None
    # lancedb's.
    full: bool | None = None
    source_version: Version | None = None
    # Beyond the protocol.
    mode: Mode | None = None
    verify: bool | None = None
    verify_rows: Count | None = None
    cascade: bool | None = None
    checkpoint_size: CountOrNone | None = None
    min_checkpoint_size: CountOrNone | None = None
    max_checkpoint_size: CountOrNone | None = None
    batch_checkpoint_flush_interval_seconds: Seconds | None = None


class ConsentToView(Body):
    # The state that was shown before, so that nothing else is consented to.
    state: Text | None = None
    dry_run: bool | None = None


class CreatedView(msgspec.Struct, omit_defaults=True):
    version: int
    job_id: str | None = None


class Projection(msgspec.Struct):
    output_column: str
    expression: str


class DescribedView(msgspec.Struct, omit_defaults=True):
    # lancedb's client makes its own definition from these.
    source_table: str
    projections: list[Projection]
    source_namespace: list[str] = []
    filter: str | None = None
    limit: int | None = None
    query: str | None = None
    # Beyond lancedb's form.
    kind: str = ""
    source_query: str = ""
    properties: dict[str, str] = {}


class Views(msgspec.Struct, omit_defaults=True):
    views: list[str]
    page_token: str | None = None


class ConsentReply(msgspec.Struct, omit_defaults=True):
    sources: list[str]
    state: str
    transaction_id: str | None = None


_create = msgspec.json.Decoder(CreateView)
_refresh = msgspec.json.Decoder(RefreshView)
_consent = msgspec.json.Decoder(ConsentToView)
_body = msgspec.json.Decoder(Body)


async def create(call: Call) -> Reply:
    body = call.decode(_create)
    body.udtf_spec = await binding.fill_spec(call.catalog, body.udtf_spec, call.origin)
    wanted = ViewCreation(
        _read_asked(body),
        with_data=body.with_no_data is False,
        auto_refresh=bool(body.auto_refresh),
        target_lag_seconds=body.target_lag_seconds,
        schedule=read_schedule(body.refresh_schedule, body.refresh_schedule_timezone),
        cluster=body.cluster,
    )
    made = await view_creating.create(call.catalog, call.id, wanted, call.origin)
    return created_reply(made.version, made.job_id, wanted.asked)


async def refresh(call: Call) -> Reply:
    wanted = _read_refresh(call)
    view = await materialized_views.get(call.catalog.database, call.id)
    request = cascades.request_cascade if wanted.cascade else refreshes.request_refresh
    id = await request(call.catalog, view, wanted, call.origin)
    return Reply(202, msgspec.json.encode(QueuedJob(id)))


async def explain(call: Call) -> Reply:
    wanted = _read_refresh(call)
    view = await materialized_views.get(call.catalog.database, call.id)
    if wanted.cascade:
        plan = await cascades.explain_cascade(call.catalog, view, wanted, call.origin)
    else:
        plan = await refreshes.explain_refresh(call.catalog, view, wanted, call.origin)
    return Reply(200, msgspec.json.encode(plan))


async def describe(call: Call) -> DescribedView:
    call.decode(_body)
    view = await materialized_views.get(call.catalog.database, call.id)
    shown = view_state.show_query(view)
    found = DescribedView(
        source_table=shown.source[-1],
        source_namespace=list(shown.source[:-1]),
        projections=[Projection(name, text) for name, text in shown.columns],
        filter=shown.filter,
        limit=shown.limit,
        query=view.asked.sql,
        kind=view.asked.kind,
        source_query=view.asked.source_query,
    )
    found.properties = await view_state.describe(call.catalog, view, call.origin)
    return found


async def consent(call: Call) -> ConsentReply:
    body = call.decode(_consent)
    view = await materialized_views.get(call.catalog.database, call.id)
    found = await consent_requests.consent(
        call.catalog, view, body.state, call.origin, dry_run=bool(body.dry_run)
    )
    return ConsentReply(found.sources, found.state, found.transaction)


async def list_views(call: Call) -> Views:
    page = call.page(f"materialized views:{to_path(call.id)}")
    found = await materialized_views.list_names(call.catalog, call.id, page, call.only)
    return Views(found.items, found.token)


async def drop(call: Call) -> RemovedTable:
    """Drop a view; refuses a table that is not one."""
    call.decode(_body)
    await materialized_views.get(call.catalog.database, call.id)
    table, transaction = await table_changes.drop(
        call.catalog, call.id, call.origin, call.allowance()
    )
    return removed_table(table, transaction)


def created_reply(version: int, job_id: str | None, asked: SentDefinition) -> Reply:
    # lancedb's client takes only this for a view that is being created.
    status = 201 if asked.sql is None else 202
    return Reply(status, msgspec.json.encode(CreatedView(version, job_id)))


async def recover_created(call: Call, version: int | None) -> Reply:
    """Rebuild the answer to a creation that is known to have happened."""
    asked = _read_asked(call.decode(_create))
    job_id = None
    try:
        table = await tables.get(call.catalog.database, call.id)
        job_id = await view_state.find_first_job(call.catalog.database, table.id)
    except TableNotFound:
        pass  # dropped since; it was created all the same
    return created_reply(version or 1, job_id, asked)


def _read_asked(body: CreateView) -> SentDefinition:
    if body.query is not None:
        given = [n for n in ("kind", "source_query", "udtf_spec") if getattr(body, n) is not None]
        if given:
            raise InvalidRequest(
                f"query cannot be used together with {given[0]}", detail="send only one of them"
            )
        text = msgspec.json.encode({"sql": body.query, "dialect": "lance"}).decode()
        return SentDefinition(
            kind="query",
            source_query=text,
            output_schema=body.output_schema or None,
            sql=body.query,
        )
    if body.source_query is None:
        raise InvalidRequest("source_query is missing", detail="send the query of the view")
    if body.kind is None:
        raise InvalidRequest("kind is missing", detail="use query, udtf or chunker")
    return SentDefinition(
        kind=read_kind(body.kind),
        source_query=body.source_query,
        output_schema=body.output_schema or None,
        udtf_spec=body.udtf_spec,
    )


def _read_refresh(call: Call) -> RefreshRequest:
    body = call.decode(_refresh)
    if None not in (body.src_version, body.source_version) and (
        body.src_version != body.source_version
    ):
        raise InvalidRequest(
            f"src_version is {body.src_version}, source_version is {body.source_version}",
            detail="send only one of them",
        )
    if body.full and body.mode not in (None, "full"):
        raise InvalidRequest(
            f"full cannot be used together with mode {body.mode}", detail="send only one of them"
        )
    version = body.src_version if body.src_version is not None else body.source_version
    return RefreshRequest(
        mode="full" if body.full else body.mode or "auto",
        src_version=version,
        output_limit=body.output_limit,
        options={
            "max_rows_per_fragment": body.max_rows_per_fragment,
            "concurrency": body.concurrency,
            "intra_applier_concurrency": body.intra_applier_concurrency,
            "source_task_size": body.source_task_size or None,
            **read_sizes(body.checkpoint_size, body.min_checkpoint_size, body.max_checkpoint_size),
            "batch_checkpoint_flush_interval_seconds": body.batch_checkpoint_flush_interval_seconds,
            "verify": bool(body.verify) or body.verify_rows is not None,
            "verify_rows": body.verify_rows,
        },
        cluster=body.cluster,
        manifest=body.manifest,
        cascade=bool(body.cascade),
    )
