"""Answers with rows: a file that a worker writes, sent whole or while it grows.

It is an Arrow file, unless the request asks for another form by its own name. `application/json` is
none of these: published clients accept it everywhere, and expect Arrow.
"""

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from penstock.errors import PenstockError
from penstock.lance.doors import formats
from penstock.lance.read.results import Write, write_file
from penstock.lance.storage.data_threads import Deadline
from penstock.model.codes import BROKEN_OFF
from penstock.server.lance.call import Call
from penstock.server.lance.errors import to_reply
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import ClientGone, Receive, Reply

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RowFormat:
    """A form of rows: its media type, and what writes it."""

    kind: bytes
    write: Write


ARROW_FILE = RowFormat(b"application/vnd.apache.arrow.file", write_file)
_FORMATS = {
    "application/vnd.penstock.rows+json": lambda rows, sink: formats.write_json(rows, sink),
    "text/csv": lambda rows, sink: formats.write_csv(rows, sink),
    "application/vnd.apache.parquet": lambda rows, sink: formats.write_parquet(rows, sink),
}


def choose_format(call: Call) -> RowFormat:
    """The form that a request accepts first, of those that we have; Arrow if it names none."""
    for each in call.headers.values.get("accept", "").lower().split(","):
        kind = each.partition(";")[0].strip()
        if kind in _FORMATS:
            return RowFormat(kind.encode(), _FORMATS[kind])
    return ARROW_FILE


async def answer_rows(
    call: Call,
    run: Callable[[Download], Awaitable[None]],
    deadline: Deadline,
    headers: tuple[tuple[bytes, bytes], ...] = (),
    form: RowFormat = ARROW_FILE,
) -> Reply:
    """Answer with the file that `run` has a worker write, while it grows if it is large."""
    download = Download(deadline=deadline)
    request = asyncio.current_task()
    assert request is not None
    # However the request ends, also when the server stops: no thread may wait after it.
    request.add_done_callback(lambda _: download.abandon())
    running = asyncio.ensure_future(run(download))
    await asyncio.wait((running, download.is_large), return_when=asyncio.FIRST_COMPLETED)
    if not download.is_large.done():
        await running
        return Reply(200, download.take(), form.kind, headers)
    # No row can have it in it.
    mark = secrets.token_hex(16).encode()
    sending = partial(_send, call, download, running, mark)
    headers = (*headers, (BROKEN_OFF.encode(), mark))
    return Reply(200, content_type=form.kind, headers=headers, sending=sending)


async def _send(call: Call, download: Download, running: asyncio.Future[None], mark: bytes) -> None:
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
        if not watching.done():
            log.warning("a large result could not be completed: %s", error.message)
            # The status was sent long ago; only a broken connection can tell that rows are missing.
            last = mark + _encode(error)
            with contextlib.suppress(OSError, PenstockError):
                await call.catalog.workers.run(download.break_off, last)
            await call.connection.break_off_answer()
        raise ClientGone from error
    finally:
        watching.cancel()


def _encode(error: PenstockError) -> bytes:
    """An error as the end of an answer: what its own answer would say, and the status of that."""
    reply = to_reply(error, "")
    return b'{"status":%d,"body":%b}' % (reply.status, reply.body)


async def _await_disconnect(receive: Receive, download: Download) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    download.abandon()
