"""Queries of views that hold no rows, by the operations that read tables."""

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.catalog.iceberg_views import rows
from penstock.catalog.statements.statements import StatementRequest
from penstock.errors import InvalidRequest, Unsupported
from penstock.lance.doors import pa
from penstock.lance.errors import translated
from penstock.lance.read import query
from penstock.lance.read.query import Query
from penstock.lance.storage.data_threads import Deadline
from penstock.model.identifiers import show
from penstock.model.tables import MAIN
from penstock.server.lance.call import Call
from penstock.server.lance.row_answers import answer_rows, choose_format
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import Reply

ShowPlan = Callable[[Any, Query], str]


async def query_rows(
    call: Call, asked: Query, branch: str, version: int | None
) -> Reply | StatementRequest:
    """The rows, or the statement that gives them."""
    check_newest(call, branch, version)
    catalog = call.catalog
    found = await rows.find_table_query(catalog, call.id, asked, call.origin.grantees)
    if found is None:
        sql = await catalog.workers.run(rows.to_sql, call.id, asked)
        return rows.make_request(catalog, sql)
    table, over_table = found
    deadline, form = Deadline(catalog.query_seconds), choose_format(call)

    async def run(download: Download) -> None:
        def work() -> None:
            with translated():
                form.write(query.search(table.open_dataset(), over_table), download)
                download.end()

        await catalog.workers.run_until(deadline, work)

    return await answer_rows(call, run, deadline, form=form)


async def count_rows(
    call: Call, predicate: str | None, branch: str, version: int | None
) -> int | StatementRequest:
    """The number of rows, or the statement that gives it."""
    check_newest(call, branch, version)
    catalog, asked = call.catalog, Query(filter=predicate)
    found = await rows.find_table_query(catalog, call.id, asked, call.origin.grantees)
    if found is None:
        sql = await catalog.workers.run(rows.to_count_sql, call.id, predicate)
        return rows.make_request(catalog, sql)
    table, over_table = found

    def work() -> int:
        with translated():
            return query.count(table.open_dataset(), over_table.filter)

    count = await catalog.workers.run_until(Deadline(catalog.query_seconds), work)
    return count if over_table.k is None else min(count, over_table.k)


def read_count(answer: Reply) -> int:
    """The number in the answer to a statement that counts."""
    with pa.ipc.open_file(pa.py_buffer(answer.body)) as reader:
        return int(reader.read_all().column(0)[0].as_py())


async def plan(
    call: Call,
    asked: Query,
    branch: str,
    version: int | None,
    show_plan: Callable[[Any, Query], str],
) -> Reply:
    """How Lance carries out a query of a view."""
    check_newest(call, branch, version)
    catalog = call.catalog
    found = await rows.find_table_query(catalog, call.id, asked, call.origin.grantees)
    if found is None:
        raise Unsupported(
            f"Spark answers this query of {show(call.id)}, and has no plan before it runs",
            detail="query it",
        )
    table, over_table = found

    def work() -> str:
        with translated():
            return show_plan(table.open_dataset(), over_table)

    shown = await catalog.workers.run_until(Deadline(catalog.query_seconds), work)
    return Reply(200, msgspec.json.encode(shown))


def check_newest(call: Call, branch: str, version: int | None) -> None:
    """A view is what its query gives now."""
    if branch != MAIN or version is not None:
        what = f"version {version}" if version is not None else f"branch {branch}"
        raise InvalidRequest(
            f"{show(call.id)} is a view, and its rows have no {what}",
            detail="leave it out; the view's query may change, and has a history",
        )
