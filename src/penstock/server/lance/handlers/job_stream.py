"""A job's changes as server-sent events, until the job has ended."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from penstock.catalog.jobs import jobs
from penstock.catalog.jobs.queue import wait_for
from penstock.model.jobs import Job
from penstock.server.lance.call import Call
from penstock.server.lance.handlers.jobs import job_id
from penstock.server.transport.http import Receive, Reply

EVENT_STREAM = b"text/event-stream; charset=utf-8"
HEADERS = ((b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"))
# How often to look for changes on other servers; also keeps proxies from closing the stream.
LOOK_SECONDS, SILENCE_SECONDS = 1.0, 10.0


async def stream(call: Call) -> Reply:
    """Send the job as it is, then each change of it; the last event is `end`."""
    job = await jobs.get(call.catalog.database, job_id(call))
    return Reply(200, b"", EVENT_STREAM, HEADERS, chunks=_events(call, job.id))


async def gone(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


@contextlib.asynccontextmanager
async def watched(call: Call) -> "AsyncIterator[asyncio.Task[None]]":
    """A task that is done when the client has closed the connection, inside the block."""
    leaving = asyncio.create_task(gone(call.receive))
    try:
        yield leaving
    finally:
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving


async def _events(call: Call, id: str) -> AsyncIterator[bytes]:
    queue, clock = call.catalog.queue, asyncio.get_running_loop().time
    shown: Any = None
    quiet_since = clock()
    async with watched(call) as leaving:
        try:
            while not leaving.done():
                bell = queue.bell(id)
                job = await jobs.find(call.catalog.database, id)
                if job is None:
                    return
                if call.still_allowed is not None and not await call.still_allowed():
                    return
                if (now := _show(job)) != shown:
                    shown, quiet_since = now, clock()
                    yield _encode("progress", now)
                if job.is_finished:
                    yield _encode("end", now)
                    return
                if queue.is_closed:
                    return
                if clock() - quiet_since >= SILENCE_SECONDS:
                    quiet_since = clock()
                    yield b": still here\n\n"
                await wait_for(bell, LOOK_SECONDS)
        finally:
            # Ring for others who follow the job; otherwise nobody would remove the bell.
            queue.ring(id)


def _show(job: Job) -> dict[str, Any]:
    return {"job_id": job.id, "status": job.state, "properties": jobs.describe(job)}


def _encode(event: str, data: Any) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.encode(), msgspec.json.encode(data))
