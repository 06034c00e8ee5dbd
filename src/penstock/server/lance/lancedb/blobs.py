"""lancedb's reads of blobs: whole values of many rows, or ranges of one."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec

from penstock.catalog.data import datasets
from penstock.catalog.names import tables
from penstock.errors import InvalidRequest
from penstock.lance.read import blobs, results
from penstock.lance.storage.data_threads import Deadline
from penstock.model.branches import check_branch
from penstock.server.lance.call import Body, Call, Version
from penstock.server.lance.row_answers import answer_rows
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import Reply

RowId = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
BYTES = b"application/octet-stream"
# A range up to this size is sent whole; a larger one in parts of this size.
PART_BYTES = 1024 * 1024


class FetchBlobs(Body):
    column: Annotated[str, msgspec.Meta(min_length=1)]
    row_ids: list[RowId]
    version: Version | None = None
    branch: str | None = None


_fetch = msgspec.json.Decoder(FetchBlobs)


async def fetch(call: Call) -> Reply:
    """The bytes of a blob column for many rows, as an Arrow file in the order of the rows."""
    body = call.decode(_fetch)
    branch = check_branch(body.branch)
    table = await tables.get(call.catalog.database, call.id)
    deadline = Deadline(call.catalog.query_seconds)

    async def run(download: Download) -> None:
        def work(dataset: Any) -> None:
            results.write_file(blobs.read_blobs(dataset, body.column, body.row_ids), download)
            download.end()

        await datasets.read(call.catalog, table, branch, body.version, work, deadline=deadline)

    return await answer_rows(call, run, deadline)


async def read_range(call: Call) -> Reply:
    """A range of one row's blob; 204 for a null, 416 for a range that it does not have."""
    column, row = call.names
    if not re.fullmatch(r"\d{1,18}", row):
        raise InvalidRequest(f"the row id is {row!r}", detail="use the _rowid of a row")
    table = await tables.get(call.catalog.database, call.id)
    version, file = await datasets.read(
        call.catalog,
        table,
        check_branch(call.text("branch")),
        _read_version(call),
        lambda dataset: blobs.open_blob(dataset, column, int(row)),
    )
    # The client asks for the same version when it reads on.
    headers = ((b"x-lancedb-version", str(version).encode()), (b"accept-ranges", b"bytes"))
    if file is None:
        return Reply(204, headers=headers)
    size = file.size()
    asked = _read_range(call.headers.values.get("range"), size)
    if asked is None:
        return await _send(call, file, range(size), 200, headers)
    if not asked:
        return Reply(416, headers=(*headers, (b"content-range", b"bytes */%d" % size)))
    place = b"bytes %d-%d/%d" % (asked.start, asked.stop - 1, size)
    return await _send(call, file, asked, 206, (*headers, (b"content-range", place)))


async def _send(
    call: Call, file: Any, asked: range, status: int, headers: tuple[tuple[bytes, bytes], ...]
) -> Reply:
    def read(start: int) -> bytes:
        found: bytes = file.read_range(start, min(PART_BYTES, asked.stop - start))
        return found

    first = await call.catalog.workers.run(read, asked.start) if asked else b""
    if len(asked) <= PART_BYTES:
        return Reply(status, first, BYTES, headers)

    async def parts() -> AsyncIterator[bytes]:
        yield first
        # Between two parts a slow reader holds no thread.
        for start in range(asked.start + PART_BYTES, asked.stop, PART_BYTES):
            yield await call.catalog.workers.run_admitted(read, start)

    length = (b"content-length", str(len(asked)).encode())
    return Reply(status, content_type=BYTES, headers=(*headers, length), chunks=parts())


def _read_range(text: str | None, size: int) -> range | None:
    """The bytes that a Range header asks for; None without one."""
    if text is None:
        return None
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", text.strip())
    if match is None or not (match[1] or match[2]):
        raise InvalidRequest(
            f"Range is {text[:80]!r}",
            detail="ask for one range: bytes=0-99, bytes=100- or bytes=-9",
        )
    if not match[1]:
        return range(max(0, size - int(match[2])), size)
    start = int(match[1])
    return range(start, min(size, int(match[2]) + 1) if match[2] else size)


def _read_version(call: Call) -> int | None:
    text = call.text("version")
    if text is None:
        return None
    if not re.fullmatch(r"\d{1,18}", text):
        raise InvalidRequest(f"version is {text!r}", detail="use a version's number")
    return int(text)
