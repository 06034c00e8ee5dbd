"""Operations that write rows: from Arrow streams, and by SQL updates and deletes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from penstock.catalog.columns import computed_columns
from penstock.catalog.data import datasets, part_uploads, rows
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.lance.write.row_changes import Merge, delete, update
from penstock.lance.write.uploads import ReadableFile
from penstock.model.branches import check_branch
from penstock.model.tables import MAIN, Table
from penstock.server.lance.call import Body, Call, choose
from penstock.server.transport.http import ClientGone, LentBody
from penstock.server.transport.uploads import DirectUpload, Upload

# A body up to this size is read whole, and checked before anything is written.
WHOLE_BYTES = 4 * 1024 * 1024


class UpdateTable(Body):
    updates: list[tuple[str, str]]
    predicate: str | None = None
    branch: str | None = None


class DeleteFromTable(Body):
    predicate: str
    branch: str | None = None


class CreatedTable(msgspec.Struct, omit_defaults=True):
    location: str
    version: int
    properties: dict[str, str]
    storage_options: dict[str, str] | None = None
    transaction_id: str | None = None


class InsertedRows(msgspec.Struct, omit_defaults=True):
    version: int
    num_inserted_rows: int
    transaction_id: str | None = None
    # Beyond the protocol: those that were replaced.
    num_deleted_rows: int = 0


class MergedRows(msgspec.Struct, omit_defaults=True):
    version: int
    num_updated_rows: int
    num_inserted_rows: int
    num_deleted_rows: int
    # The rows that were written; lancedb's word.
    num_rows: int


class UpdatedRows(msgspec.Struct):
    updated_rows: int
    # The same number; lancedb's word.
    rows_updated: int
    version: int
    properties: dict[str, str]


class DeletedRows(msgspec.Struct):
    version: int
    # Beyond the protocol: lancedb asks for it.
    num_deleted_rows: int


_update = msgspec.json.Decoder(UpdateTable)
_delete = msgspec.json.Decoder(DeleteFromTable)
_properties = msgspec.json.Decoder(dict[str, str])


async def create(call: Call) -> CreatedTable:
    mode = choose("mode", call.text("mode"), ("create", "exist_ok", "overwrite"))
    catalog = call.catalog
    location = call.headers.values.get("x-lance-table-location")
    new = tables.plan_table(
        catalog, call.id, location, _read_properties(call), catalog.managed_versions
    )
    async with arriving(call) as source:
        made = await rows.create(catalog, new, mode, source, call.origin)
    options = catalog.lake.public_options() or None
    table = made.table
    if mode == "overwrite" and table.has_bound_columns:
        await computed_columns.mirror(catalog, table, MAIN)
    return CreatedTable(
        table.location, made.version, table.properties, options, made.transaction_id
    )


async def insert(call: Call) -> InsertedRows:
    mode = choose("mode", call.text("mode"), ("append", "overwrite"))
    branch = check_branch(call.text("branch"))
    table = await _get_writable(call)
    if (upload := call.text("upload_id")) is not None:
        return await _add_part(call, table, branch, mode, upload)
    write = rows.insert if mode == "append" else rows.overwrite
    if mode == "overwrite" and not await datasets.has_version(call.catalog, table, branch):
        write = rows.insert
    async with arriving(call) as source:
        done = await write(call.catalog, table, branch, source, call.origin)
    if mode == "overwrite" and table.has_bound_columns:
        await computed_columns.mirror(call.catalog, table, branch)
    return InsertedRows(done.version, done.rows, done.transaction_id or None, done.replaced)


async def _add_part(call: Call, table: Table, branch: str, mode: str, upload: str) -> InsertedRows:
    """One part of an upload, which is committed when the upload is completed."""
    part = call.text("upload_part_id")
    if part is None:
        raise InvalidRequest("upload_part_id is missing", detail="name each part of the upload")
    async with arriving(call) as source:
        count, version = await part_uploads.add_part(
            call.catalog, table, branch, upload, part, mode, source
        )
    return InsertedRows(version, count)


async def merge(call: Call) -> MergedRows:
    branch = check_branch(call.text("branch"))
    table = await _get_writable(call)
    async with arriving(call) as source:
        done = await rows.merge(call.catalog, table, branch, source, _read_merge(call), call.origin)
    written = done.updated + done.inserted
    return MergedRows(done.version, done.updated, done.inserted, done.deleted, written)


async def update_rows(call: Call) -> UpdatedRows:
    body = call.decode(_update)
    if not body.updates:
        raise InvalidRequest("updates is empty", detail="name a column and an expression")
    values = dict(body.updates)
    if len(values) < len(body.updates):
        raise InvalidRequest("updates names a column twice", detail="name each column once")
    table = await _get_writable(call)
    branch = check_branch(body.branch)
    count, version = await datasets.change(
        call.catalog,
        table,
        branch,
        lambda dataset: update(dataset, values, body.predicate),
        call.origin,
    )
    return UpdatedRows(count, count, version, table.properties)


async def find_updated(call: Call) -> tuple[Table, str]:
    """The table and branch of an update."""
    body = call.decode(_update)
    return await tables.get(call.catalog.database, call.id), check_branch(body.branch)


async def delete_rows(call: Call) -> DeletedRows:
    body = call.decode(_delete)
    table = await _get_writable(call)
    branch = check_branch(body.branch)
    count, version = await datasets.change(
        call.catalog, table, branch, lambda dataset: delete(dataset, body.predicate), call.origin
    )
    return DeletedRows(version, count)


async def _get_writable(call: Call) -> Table:
    """The table, if clients may write its rows."""
    return tables.check_rows(await tables.get(call.catalog.database, call.id))


def _read_merge(call: Call) -> Merge:
    on = [name for value in call.query.get("on", []) for name in value.split(",") if name]
    if not on:
        raise InvalidRequest("on is missing", detail="name the key column, on=a, or several")
    how = Merge(
        on=on,
        update_matched=bool(call.flag("when_matched_update_all")),
        update_filter=call.text("when_matched_update_all_filt"),
        insert_new=bool(call.flag("when_not_matched_insert_all")),
        delete_missing=bool(call.flag("when_not_matched_by_source_delete")),
        delete_filter=call.text("when_not_matched_by_source_delete_filt"),
        timeout_seconds=_read_seconds(call.text("timeout")),
        use_index=call.flag("use_index") is not False,
    )
    if not (how.update_matched or how.insert_new or how.delete_missing):
        raise InvalidRequest(
            "the merge would change nothing",
            detail="set when_matched_update_all, when_not_matched_insert_all or "
            "when_not_matched_by_source_delete",
        )
    return how


def _read_seconds(text: str | None) -> float | None:
    """A duration such as `30`, `30s`, `500ms`, `5m` or `1h`."""
    if text is None:
        return None
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    unit = next((u for u in units if text.endswith(u)), "")
    try:
        seconds = float(text.removesuffix(unit)) * units.get(unit, 1)
    except ValueError:
        seconds = -1
    if not 0 < seconds < 1e9:
        raise InvalidRequest(f"timeout is {text!r}", detail="write it as 30s, 500ms, 5m or 1h")
    return seconds


def _read_properties(call: Call) -> dict[str, str]:
    """Properties as JSON in the query, as clients send them, or in the header."""
    text = call.text("properties") or call.headers.values.get("x-lance-table-properties")
    if not text:
        return {}
    try:
        return _properties.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"properties is no JSON map of strings: {error}", detail='write {"key": "value"}'
        ) from error


@asynccontextmanager
async def arriving(call: Call) -> AsyncIterator["ReadableFile | bytes"]:
    """The body: its bytes if it is small, else a file that is read while it arrives."""
    parts, size = [], 0
    while size <= WHOLE_BYTES:
        message = await call.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body"):
            yield b"".join(parts)
            return
    if (lent := _lend(call, size)) is not None:
        direct = DirectUpload(lent, parts)
        try:
            yield direct
        finally:
            call.connection.take_back_body(direct.close())
        return
    upload = Upload(call.receive, parts)
    feeding = asyncio.create_task(upload.feed())
    try:
        yield upload
    finally:
        upload.close()
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


def _lend(call: Call, taken: int) -> LentBody | None:
    """Lend the rest of a body of known length; a chunked one has to go through the parser.

    A body with a key also goes through the event loop, which digests it.
    """
    length = call.headers.values.get("content-length")
    if length is None or call.key is not None:
        return None
    return call.connection.lend_body(int(length), taken)
