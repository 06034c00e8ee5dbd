"""One value of one row, whole, in a form that a browser can show and can't run."""

import re

from penstock.catalog.data import datasets
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.lance.doors import whole_values
from penstock.lance.read.media import HEAD_BYTES, find_image
from penstock.lance.storage.data_threads import Deadline
from penstock.model.branches import check_branch
from penstock.server.lance.call import Call
from penstock.server.transport.http import JSON, Reply

BYTES, TEXT = b"application/octet-stream", b"text/plain; charset=utf-8"
# Whoever wrote the value must not write the page that shows it.
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'; sandbox"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"private, no-cache"),
)
AS_FILE = (b"content-disposition", b'attachment; filename="value.bin"')
NULL = Reply(204, headers=HEADERS)


async def read_cell(call: Call) -> Reply:
    """The value of a column in a row: a picture as what its bytes say, any others as plain data."""
    column, row = call.text("column"), _read_number(call, "row_id")
    if not column or row is None:
        raise InvalidRequest(
            "column or row_id is missing", detail="name a column, and the _rowid of a row"
        )
    version = _read_number(call, "version")
    table = await tables.get(call.catalog.database, call.id)
    found = await datasets.read(
        call.catalog,
        table,
        check_branch(call.text("branch")),
        version,
        lambda dataset: whole_values.read_value(dataset, column, row),
        deadline=Deadline(call.catalog.query_seconds),
    )
    if found.content is None:
        return NULL
    if found.kind == whole_values.JSON:
        return Reply(200, found.content, JSON, HEADERS)
    if found.kind == whole_values.TEXT:
        return Reply(200, found.content, TEXT, HEADERS)
    media = find_image(found.content[:HEAD_BYTES])
    if media is None:
        return Reply(200, found.content, BYTES, (*HEADERS, AS_FILE))
    return Reply(200, found.content, media.encode(), HEADERS)


def _read_number(call: Call, name: str) -> int | None:
    text = call.text(name)
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,20}", text) or int(text) >= 2**63:
        raise InvalidRequest(f"{name} is {text[:40]!r}", detail="use a whole number")
    return int(text)
