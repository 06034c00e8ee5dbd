"""Operations that read rows: query, count, and the plans of queries."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.materialized_views import view_description
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest, PenstockError
from penstock.lance.expressions.check import check_expression, check_expressions
from penstock.lance.read import fulltext, query, results
from penstock.lance.read.query import Query, VectorSearch
from penstock.lance.storage.data_threads import Deadline
from penstock.model.branches import check_branch
from penstock.server.lance.call import Body, Call, choose
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import ClientGone, Receive, Reply

log = logging.getLogger(__name__)

ARROW_FILE = b"application/vnd.apache.arrow.file"
METRICS = ("l2", "cosine", "dot", "hamming")
# The largest query; server.max_json_bytes limits every other operation, and has this default.

Version = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Rows = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Vector = list[float | list[float]]


class Vectors(msgspec.Struct):
    single_vector: list[float] | None = None
    multi_vector: list[list[float]] | None = None


class Order(msgspec.Struct):
    column_name: Name
    ascending: bool | None = None
    nulls_first: bool | None = None


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
    upper_bound: float | None = None
    # The protocol's object, or a plain array: numbers are one vector, arrays are several.
    vector: Vectors | Vector | None = None
    vector_column: Name | None = None
    version: Version | None = None
    with_row_id: bool | None = None


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


async def query_table(call: Call) -> Reply:
    body = call.decode(_query)
    wanted, branch = to_query(body), check_branch(body.branch)
    table = await tables.get(call.catalog.database, call.id)
    # Read before the rows, which may then be fresher than stated, but never older.
    headers = (
        await view_description.list_headers(call.catalog.database, table) if table.is_view else ()
    )
    deadline = Deadline(call.catalog.query_seconds)
    download = Download(deadline=deadline)

    def work(dataset: Any) -> None:
        results.write_file(query.search(dataset, wanted), download)
        download.end()

    request = asyncio.current_task()
    assert request is not None
    # However the request ends, also when the server stops: no thread may wait after it.
    request.add_done_callback(lambda _: download.abandon())
    running = asyncio.ensure_future(
        datasets.read(call.catalog, table, branch, body.version, work, deadline=deadline)
    )
    await asyncio.wait((running, download.is_large), return_when=asyncio.FIRST_COMPLETED)
    if not download.is_large.done():
        await running
        return Reply(200, download.take(), ARROW_FILE, headers)
    sending = partial(_send, call, download, running)
    return Reply(200, content_type=ARROW_FILE, headers=headers, sending=sending)


async def count_rows(call: Call) -> Reply:
    body = call.decode(_count)
    given = body.predicate
    predicate = None if given is None else check_expression("predicate", given)
    return await _read(
        call,
        body.branch,
        body.version,
        lambda dataset: query.count(dataset, predicate),
        # Without a predicate the manifest has the number.
        is_brief=predicate is None,
    )


async def explain_plan(call: Call) -> Reply:
    body = call.decode(_explain)
    wanted, verbose = to_query(body.query), bool(body.verbose)
    branch = body.branch if body.branch is not None else body.query.branch
    return await _read(
        call, branch, body.query.version, lambda d: query.explain(d, wanted, verbose)
    )


async def analyze_plan(call: Call) -> Reply:
    body = call.decode(_query)
    wanted = to_query(body)
    return await _read(call, body.branch, body.version, lambda d: query.analyze(d, wanted))


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
            for one in body.order_by or ()
        ],
    )
    query.check_query(wanted)
    return wanted


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


async def _send(call: Call, download: Download, running: asyncio.Future[None]) -> None:
    """Let the worker send a result while it is computed, for as long as the client is there."""
    watching = asyncio.ensure_future(_await_disconnect(call.receive, download))
    try:
        download.send_to(await call.connection.lend_answer())
        await running
        await call.connection.take_back_answer()
    except PenstockError as error:
        if download.is_stalled:
            log.warning("a large result was broken off: %s", error.message)
            call.connection.leave()
            await watching
        if watching.done():
            raise ClientGone from error
        # The status was sent long ago; only a broken connection can tell that rows are missing.
        raise
    finally:
        watching.cancel()


async def _await_disconnect(receive: Receive, download: Download) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    download.abandon()
