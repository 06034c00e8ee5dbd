"""lancedb's uploads in parts: begin one, commit its parts together, or give it up."""

import msgspec

from penstock.catalog.columns import computed_columns
from penstock.catalog.data import part_uploads
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.model.branches import check_branch
from penstock.model.tables import Table
from penstock.server.lance.call import Body, Call


class BegunUpload(msgspec.Struct):
    upload_id: str


class CompletedUpload(msgspec.Struct):
    version: int


_body = msgspec.json.Decoder(Body)


async def begin(call: Call) -> BegunUpload:
    table, branch = await _get_target(call)
    return BegunUpload(await part_uploads.begin(call.catalog, table, branch))


async def complete(call: Call) -> CompletedUpload:
    table, branch = await _get_target(call)
    version = await part_uploads.complete(call.catalog, table, branch, _read_id(call), call.origin)
    if table.has_bound_columns:
        await computed_columns.mirror(call.catalog, table, branch)
    return CompletedUpload(version)


async def abort(call: Call) -> None:
    table, _ = await _get_target(call)
    await part_uploads.abort(call.catalog, table, _read_id(call))


async def _get_target(call: Call) -> tuple[Table, str]:
    call.decode(_body)
    branch = check_branch(call.text("branch"))
    return tables.check_rows(await tables.get(call.catalog.database, call.id)), branch


def _read_id(call: Call) -> str:
    id = call.text("upload_id")
    if id is None:
        raise InvalidRequest(
            "upload_id is missing", detail="name the upload that multipart_write/create began"
        )
    return id
