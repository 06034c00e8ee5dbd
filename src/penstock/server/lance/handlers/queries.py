"""Operations that read rows: query, count, the plans of queries, and SQL over several tables."""

import secrets
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.jobs.geneva_tables import ANSWERED
from penstock.catalog.materialized_views import view_description
from penstock.catalog.names import tables
from penstock.catalog.statements import lance_rows, statements
from penstock.catalog.statements import results as statement_results
from penstock.catalog.statements.statements import StatementRequest
from penstock.errors import Forbidden, InvalidRequest, PenstockError, ViewIsNoTable
from penstock.lance.expressions.check import check_expression, check_expressions
from penstock.lance.read import fulltext, query
from penstock.lance.read.query import Query, VectorSearch
from penstock.lance.storage.data_threads import Deadline
from penstock.model.branches import check_branch
from penstock.model.identifiers import check_identifier
from penstock.server.lance.call import Body, Call, choose
from penstock.server.lance.geneva import system_tables
from penstock.server.lance.handlers.job_stream import watched
from penstock.server.lance.handlers.views import rows as view_rows
from penstock.server.lance.row_answers import (
    ARROW_FILE,
    RowFormat,
    answer_rows,
    choose_format,
)
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import ClientGone, Reply
from penstock.sql.statements import Statement

MAX_SAMPLE = 100_000
METRICS = ("l2", "cosine", "dot", "hamming")
# The largest query; server.max_json_bytes limits every other operation, and has this default.

Version = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Rows = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Vector = list[float | list[float]]
Sql = Annotated[str, msgspec.Meta(min_length=1, max_length=100_000, pattern="^[^\\x00]*$")]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class Vectors(msgspec.Struct):
    single_vector: list[float] | None = None
    multi_vector: list[list[float]] | None = None


class Order(msgspec.Struct):
    column_name: Name
    ascending: bool | None = None
    nulls_first: bool | None = None


class Sample(msgspec.Struct):
    rows: Annotated[int, msgspec.Meta(ge=0, le=MAX_SAMPLE)]
    # The same seed gives the same rows, while the table has them.
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None = None


class QueryTable(Body):
    branch: str | None = None
    bypass_vector_index: bool | None = None
    # The protocol's object, a plain list of names, or a plain map from alias to expression.
    columns: list[Name] | dict[str, Any] | None = None
    distance_type: str | None = None
    ef: Number | None = None
    fast_search: bool | None = None
    filter: str | None = None
    full_text_query: fulltext.TextSearch | None = None
    # Required by the protocol; a scan without it returns all rows.
    k: Rows | None = None
    lower_bound: float | None = None
    # 0 is as many as there are.
    maximum_nprobes: Number | None = None
    minimum_nprobes: Count | None = None
    nprobes: Number | None = None
    offset: Rows | None = None
    # Beyond the protocol: lancedb sends it.
    order_by: Annotated[list[Order], msgspec.Meta(max_length=64)] | None = None
    # The protocol has no default. Lance and the reference server filter afterwards.
    prefilter: bool | None = None
    refine_factor: Number | None = None
    # Ours: so many rows at random.
    sample: Sample | None = None
    upper_bound: float | None = None
    # The protocol's object, or a plain array: numbers are one vector, arrays are several.
    vector: Vectors | Vector | None = None
    vector_column: Name | None = None
    version: Version | None = None
    with_row_id: bool | None = None


class RunSql(Body):
    sql: Sql
    dialect: str | None = None
    # Where single names are looked up first.
    namespace: list[str] | None = None
    # Keeps so many rows of the result.
    limit: Rows | None = None
    # These can only lower what the server allows.
    timeout_seconds: Seconds | None = None
    max_rows: Count | None = None
    max_bytes: Count | None = None
    cluster: str | None = None


class CountRows(Body):
    version: Version | None = None
    branch: str | None = None
    predicate: str | None = None


class ExplainPlan(Body):
    query: QueryTable
    branch: str | None = None
    verbose: bool | None = None


_query = msgspec.json.Decoder(QueryTable)
_count = msgspec.json.Decoder(CountRows)
_explain = msgspec.json.Decoder(ExplainPlan)
_sql = msgspec.json.Decoder(RunSql)


async def query_table(call: Call) -> Reply:
    body = call.decode(_query)
    wanted, branch = to_query(body), check_branch(body.branch)
    if call.id in ANSWERED:
        return await system_tables.query_rows(call, wanted)
    try:
        table = await tables.get(call.catalog.database, call.id)
    except ViewIsNoTable:
        found = await view_rows.query_rows(call, wanted, branch, body.version)
        if isinstance(found, StatementRequest):
            return await _answer(call, found, choose_format(call))
        return found
    # Read before the rows, which may then be fresher than stated, but never older.
    headers = (
        await view_description.list_headers(call.catalog.database, table) if table.is_view else ()
    )
    deadline, form = Deadline(call.catalog.query_seconds), choose_format(call)

    async def run(download: Download) -> None:
        def work(dataset: Any) -> None:
            form.write(query.search(dataset, wanted), download)
            download.end()

        await datasets.read(call.catalog, table, branch, body.version, work, deadline=deadline)

    return await answer_rows(call, run, deadline, headers, form)


async def count_rows(call: Call) -> Reply:
    body = call.decode(_count)
    given = body.predicate
    predicate = None if given is None else check_expression("predicate", given)
    try:
        return await _read(
            call,
            body.branch,
            body.version,
            lambda dataset: query.count(dataset, predicate),
            # Without a predicate the manifest has the number.
            is_brief=predicate is None,
        )
    except ViewIsNoTable:
        branch = check_branch(body.branch)
        found = await view_rows.count_rows(call, predicate, branch, body.version)
        if isinstance(found, StatementRequest):
            found = view_rows.read_count(await _answer(call, found, ARROW_FILE))
        return Reply(200, msgspec.json.encode(found))


async def explain_plan(call: Call) -> Reply:
    body = call.decode(_explain)
    wanted, verbose = to_query(body.query), bool(body.verbose)
    branch = body.branch if body.branch is not None else body.query.branch
    return await _plan(
        call, branch, body.query.version, wanted, lambda d, asked: query.explain(d, asked, verbose)
    )


async def analyze_plan(call: Call) -> Reply:
    body = call.decode(_query)
    wanted = to_query(body)
    return await _plan(call, body.branch, body.version, wanted, query.analyze)


async def run_sql(call: Call) -> Reply:
    return await _answer(call, _read_sql(call), choose_format(call))


async def _answer(call: Call, asked: StatementRequest, form: RowFormat) -> Reply:
    read = await statements.read(call.catalog, asked, call.origin.grantees)
    found = read.found
    if isinstance(found, Statement):
        return await _run_on_spark(call, asked, found, read.ids, form)
    deadline = Deadline(asked.seconds)
    await lance_rows.check_count(call.catalog, asked, found, deadline)
    write = partial(lance_rows.write_to, call.catalog, asked, found, deadline, form.write)
    return await answer_rows(call, write, deadline, form=form)


async def _run_on_spark(
    call: Call,
    asked: StatementRequest,
    statement: Statement,
    ids: frozenset[str],
    form: RowFormat,
) -> Reply:
    async with watched(call) as leaving:
        job = await statements.run_on_spark(call.catalog, asked, statement, leaving)
        if job is None:
            raise ClientGone
    try:
        await _check_rights(call, ids)
    except PenstockError:
        await statement_results.remove(call.catalog, job.id)
        raise
    deadline = Deadline(call.catalog.query_seconds)

    async def copy(download: Download) -> None:
        await statement_results.write_to(call.catalog, job.id, download, deadline, form.write)

    return await answer_rows(call, copy, deadline, form=form)


async def _check_rights(call: Call, ids: frozenset[str]) -> None:
    """Check again what was checked when the statement began to wait for its runner."""
    if call.still_allowed is not None and not await call.still_allowed():
        raise Forbidden(
            "the right to run statements was taken away while it ran", detail="ask an owner"
        )
    await statements.check_rights(call.catalog, ids, call.origin.grantees)


def _read_sql(call: Call) -> StatementRequest:
    body, catalog = call.decode(_sql), call.catalog
    if not body.sql.strip():
        raise InvalidRequest("sql is empty", detail="send a query: SELECT … FROM …")
    return StatementRequest(
        sql=body.sql,
        namespace=check_identifier(tuple(body.namespace or ()), "namespace"),
        seconds=min(body.timeout_seconds or catalog.sql_seconds, catalog.sql_seconds),
        max_rows=min(body.max_rows or catalog.sql_max_rows, catalog.sql_max_rows),
        max_bytes=min(body.max_bytes or catalog.sql_max_bytes, catalog.sql_max_bytes),
        dialect=body.dialect,
        limit=body.limit,
        cluster=body.cluster,
    )


def to_query(body: QueryTable) -> Query:
    """The query that a body asks for."""
    columns = to_columns(body.columns)
    if isinstance(columns, dict):
        columns = check_expressions("columns", columns)
    text = body.full_text_query
    wanted = Query(
        columns=columns,
        filter=None if body.filter is None else check_expression("filter", body.filter),
        prefilter=bool(body.prefilter),
        k=body.k,
        offset=body.offset or 0,
        vector=to_vector_search(body),
        text=None if text is None else fulltext.check(text),
        fast_search=bool(body.fast_search),
        with_row_id=bool(body.with_row_id),
        order_by=[
            (one.column_name, one.ascending is not False, bool(one.nulls_first))
            # Lance cannot sort no rows.
            for one in (body.order_by or () if body.k != 0 else ())
        ],
        sample=None if body.sample is None else _to_sample(body.sample),
    )
    query.check_query(wanted)
    return wanted


def _to_sample(given: Sample) -> tuple[int, int]:
    return given.rows, secrets.randbits(63) if given.seed is None else given.seed


def to_columns(given: Any) -> list[str] | dict[str, str] | None:
    """Names, or expressions by alias; None, and so all columns, when both are empty."""
    if not given or isinstance(given, list):
        return given or None
    names, aliases = given.get("column_names"), given.get("column_aliases")
    if not given.keys() <= {"column_names", "column_aliases"}:
        names, aliases = None, given
    for name, part, kind in (("column_names", names, list), ("column_aliases", aliases, dict)):
        if part is not None and not isinstance(part, kind):
            raise InvalidRequest(
                f"columns.{name} is {msgspec.json.encode(part)[:40].decode(errors='replace')}",
                detail="send a list of names, or a map of aliases to expressions",
            )
    if names and aliases:
        raise InvalidRequest(
            "columns has column_names and column_aliases", detail="send only one of them"
        )
    try:
        found: list[str] = msgspec.convert(names or [], list[Name])
        return found or msgspec.convert(aliases or {}, dict[str, Name]) or None
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"columns is not a list of names or a map of expressions: {error}",
            detail="send column_names or column_aliases",
        ) from error


def to_vector_search(body: QueryTable) -> VectorSearch | None:
    """The vector search, if there is one: an empty vector is none."""
    vectors, batch = _read_vectors(body.vector)
    if not vectors:
        return None
    tuning = {"refine_factor": body.refine_factor, "ef": body.ef}
    if body.minimum_nprobes is None and body.maximum_nprobes is None:
        tuning["nprobes"] = body.nprobes
    tuning |= {"minimum_nprobes": body.minimum_nprobes, "maximum_nprobes": body.maximum_nprobes}
    metric = body.distance_type
    return VectorSearch(
        vectors=vectors,
        batch=batch,
        column=body.vector_column,
        metric=None if metric is None else choose("distance_type", metric, METRICS),
        bounds=(body.lower_bound, body.upper_bound),
        # The protocol allows 0, which Lance does not know: leave the choice to Lance.
        tuning={name: value for name, value in tuning.items() if value},
        use_index=not body.bypass_vector_index,
    )


def _read_vectors(given: Vectors | Vector | None) -> tuple[list[list[float]], bool]:
    if given is None or isinstance(given, list):
        several = [one for one in given or () if isinstance(one, list)]
        if several and len(several) != len(given or ()):
            raise InvalidRequest("vector mixes numbers and arrays", detail="send one or the other")
        single = [one for one in given or () if not isinstance(one, list)]
    else:
        several, single = given.multi_vector or [], given.single_vector or []
    if several and single:
        raise InvalidRequest(
            "vector has single_vector and multi_vector", detail="send only one of them"
        )
    return (several, True) if several else ([single] if single else [], False)


async def _plan(
    call: Call,
    branch: str | None,
    version: int | None,
    wanted: Query,
    show: Callable[[Any, Query], str],
) -> Reply:
    """Answer with how Lance carries a query out."""
    try:
        return await _read(call, branch, version, lambda dataset: show(dataset, wanted))
    except ViewIsNoTable:
        return await view_rows.plan(call, wanted, check_branch(branch), version, show)


async def _read(
    call: Call,
    branch: str | None,
    version: int | None,
    work: Callable[[Any], int | str],
    *,
    is_brief: bool = False,
) -> Reply:
    """Answer with a bare number or text from one version."""
    checked = check_branch(branch)
    table = await tables.get(call.catalog.database, call.id)
    deadline = Deadline(call.catalog.query_seconds)
    found = await datasets.read(
        call.catalog, table, checked, version, work, is_brief=is_brief, deadline=deadline
    )
    return Reply(200, msgspec.json.encode(found))
