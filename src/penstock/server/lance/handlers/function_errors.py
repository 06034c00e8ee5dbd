"""Rows that functions failed on, in lancedb's form and with more about each."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.jobs import ledger
from penstock.catalog.names import tables
from penstock.jobs.ledger import CutFragment, LedgerFilter
from penstock.model.branches import check_branch, show_branch
from penstock.model.paging import make_token, request_page
from penstock.server.lance.call import Body, Call, Text

LIMIT, MAX_LIMIT = 100, 10_000


class ListErrors(Body):
    column: Text | None = None
    job_id: Text | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] | None = None
    branch: str | None = None
    # Beyond lancedb's form.
    page_token: str | None = None


class ErrorRecord(msgspec.Struct):
    job_id: str
    fragment_id: int
    row_offset: int
    column: str
    function: str
    function_version: str
    table_version: int
    error_type: str
    error_message: str
    created_at_millis: int
    # Beyond lancedb's form.
    error_id: str
    branch: str
    columns: list[str]
    row_id: int
    attempt: int
    tries: int
    inputs: str
    traceback: str


class Fragment(msgspec.Struct):
    job_id: str
    fragment_id: int
    rows_skipped: int
    rows_recorded: int


class Errors(msgspec.Struct, omit_defaults=True):
    records: list[ErrorRecord]
    fragments: list[Fragment]
    truncated: bool
    # Beyond lancedb's form.
    page_token: str | None = None


_list = msgspec.json.Decoder(ListErrors)


async def list_errors(call: Call) -> Errors:
    body = call.decode(_list)
    table = await tables.get(call.catalog.database, call.id)
    wanted = LedgerFilter(
        table.id, check_branch(body.branch), body.column or None, body.job_id or None
    )
    scope = f"errors:{wanted.table_id}:{wanted.branch}:{wanted.column}:{wanted.job_id}"
    page = request_page(scope, body.page_token, body.limit or LIMIT, MAX_LIMIT)
    # The next page is one of the same version, so that new errors move nothing.
    version, _, after = (page.after or "").partition(":")
    found = await ledger.list_errors(
        call.catalog, wanted, page.limit, int(version) if version else None, int(after or 0)
    )
    key = f"{found.version}:{int(after or 0) + len(found.entries)}"
    return Errors(
        [_to_record(entry) for entry in found.entries],
        [_to_fragment(each) for each in found.cut],
        found.is_truncated,
        make_token(page, key) if found.is_truncated else None,
    )


def _to_record(entry: dict[str, Any]) -> ErrorRecord:
    return ErrorRecord(
        job_id=entry["job_id"],
        fragment_id=entry["fragment"],
        row_offset=entry["offset"],
        column=entry["column"],
        function=entry["function"],
        function_version=entry["function_version"],
        table_version=entry["table_version"],
        error_type=entry["exception"],
        error_message=entry["message"],
        created_at_millis=entry["at"],
        error_id=entry["error_id"],
        branch=show_branch(entry["branch"]),
        columns=entry["columns"],
        row_id=entry["row_id"],
        attempt=entry["attempt"],
        tries=entry["tries"],
        inputs=entry["inputs"],
        traceback=entry["traceback"],
    )


def _to_fragment(cut: CutFragment) -> Fragment:
    return Fragment(cut.job_id, cut.fragment, cut.rows, cut.rows_listed)
