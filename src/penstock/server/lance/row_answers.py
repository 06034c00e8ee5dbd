"""Answers with rows: an Arrow file that a worker writes, sent whole or while it grows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial

from penstock.errors import PenstockError
from penstock.lance.storage.data_threads import Deadline
from penstock.server.lance.call import Call
from penstock.server.transport.downloads import Download
from penstock.server.transport.http import ClientGone, Receive, Reply

log = logging.getLogger(__name__)

ARROW_FILE = b"application/vnd.apache.arrow.file"


async def answer_rows(
    call: Call,
    run: Callable[[Download], Awaitable[None]],
    deadline: Deadline,
    headers: tuple[tuple[bytes, bytes], ...] = (),
) -> Reply:
    """Answer with the Arrow file that `run` has a worker write, while it grows if it is large."""
    download = Download(deadline=deadline)
    request = asyncio.current_task()
    assert request is not None
    # However the request ends, also when the server stops: no thread may wait after it.
    request.add_done_callback(lambda _: download.abandon())
    running = asyncio.ensure_future(run(download))
    await asyncio.wait((running, download.is_large), return_when=asyncio.FIRST_COMPLETED)
    if not download.is_large.done():
        await running
        return Reply(200, download.take(), ARROW_FILE, headers)
    sending = partial(_send, call, download, running)
    return Reply(200, content_type=ARROW_FILE, headers=headers, sending=sending)


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
