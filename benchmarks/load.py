"""The load generator: prepared requests over keep-alive connections, in a process of its own.

Each connection has one request in flight; all of them take the next one from the same list.
Anything but a 200 fails the whole measurement, unless the job says that it may be refused.
"""

import asyncio
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from typing import cast

import msgspec
import uvloop

from benchmarks.processes import start_module

STALL_SECONDS = 60


class Job(msgspec.Struct):
    """What to send; the end is whichever comes first, the time or the last request."""

    port: int
    connections: int
    requests: list[bytes]
    seconds: float
    repeat: bool = False
    may_be_refused: bool = False


class Measured(msgspec.Struct):
    """What one job came to; all but the last are of requests that were answered with 200."""

    count: int
    rate: float
    p50_ms: float
    p99_ms: float
    refused: int = 0


class LoadFailed(Exception):
    """A server answered with something else than 200, or not at all."""


def measure(job: Job) -> Measured:
    """Run a job in a new process."""
    return finish(start(job))


def start(job: Job) -> "subprocess.Popen[bytes]":
    """Let a job run beside what is done next."""
    process = start_module("benchmarks.load", stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(msgspec.msgpack.encode(job))
    process.stdin.close()
    # So that nobody tries to flush it once more.
    process.stdin = None
    return process


def finish(process: "subprocess.Popen[bytes]") -> Measured:
    """Wait for the end of a job that was started."""
    output, errors = process.communicate()
    if process.returncode:
        raise LoadFailed(errors.decode(errors="replace").strip().splitlines()[-1])
    return msgspec.msgpack.decode(output, type=Measured)


def prepare(
    method: str, path: str, body: bytes = b"", kind: str = "application/json", accept: str = ""
) -> bytes:
    """The bytes of one request; `accept` names an encoding that the answer may have."""
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
    content = f"Content-Type: {kind}\r\n" if body else ""
    encoding = f"Accept-Encoding: {accept}\r\n" if accept else ""
    return f"{head}{content}{encoding}\r\n".encode() + body


class _Work:
    """What the connections share: the requests, the clock, and what came back."""

    def __init__(self, job: Job) -> None:
        self._requests: Iterator[bytes] = cycle(job.requests) if job.repeat else iter(job.requests)
        self._seconds, self._may_be_refused = job.seconds, job.may_be_refused
        self.latencies: list[float] = []
        self.statuses: Counter[str] = Counter()
        self.failure = ""
        self.started = self.ended = 0.0

    def start(self) -> None:
        self.started = time.perf_counter()

    def next(self) -> bytes | None:
        if self.failure or time.perf_counter() - self.started > self._seconds:
            return None
        return next(self._requests, None)

    def record(self, latency: float, reply: bytearray) -> None:
        status = reply[9:12].decode("latin-1")
        self.statuses[status] += 1
        if status == "200":
            self.latencies.append(latency)
        elif not self._may_be_refused and not self.failure:
            text = reply.partition(b"\r\n\r\n")[2][:500].decode(errors="replace")
            self.failure = text or "an empty answer"


class _Connection(asyncio.Protocol):
    """One keep-alive connection."""

    def __init__(self, work: _Work, done: "asyncio.Future[None]") -> None:
        self._work, self._done = work, done
        self._buffer, self._sent = bytearray(), 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes.
        self._transport = cast("asyncio.WriteTransport", transport)

    def send(self) -> None:
        request = self._work.next()
        if request is None:
            self._done.set_result(None)
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not _is_complete(self._buffer):
            return
        now = time.perf_counter()
        self._work.record(now - self._sent, self._buffer)
        self._work.ended = now
        self._buffer = bytearray()
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(LoadFailed(f"the server closed a connection: {exc}"))


def _is_complete(reply: bytearray) -> bool:
    head = reply.find(b"\r\n\r\n")
    if head < 0:
        return False
    # uvicorn and hyper write their header names in lower case, Jetty does not.
    at = reply.find(b"ontent-", 0, head)
    while at >= 0 and reply[at + 7 : at + 15].lower() != b"length: ":
        at = reply.find(b"ontent-", at + 1, head)
    if at < 0:
        return reply.endswith(b"0\r\n\r\n")
    end = reply.find(b"\r\n", at)
    return len(reply) >= head + 4 + int(reply[at + 15 : end])


async def _run(job: Job) -> Measured:
    loop = asyncio.get_running_loop()
    work, waits, connections = _Work(job), [], []
    for _ in range(job.connections):
        done: asyncio.Future[None] = loop.create_future()
        _, connection = await loop.create_connection(
            lambda done=done: _Connection(work, done),  # type: ignore[misc]
            "127.0.0.1",
            job.port,
        )
        waits.append(done)
        connections.append(connection)
    work.start()
    for connection in connections:
        connection.send()
    async with asyncio.timeout(job.seconds + STALL_SECONDS):
        await asyncio.gather(*waits)
    if work.failure or not work.latencies:
        raise LoadFailed(f"statuses {dict(work.statuses)}, such as: {work.failure}")
    ordered = sorted(work.latencies)
    return Measured(
        len(ordered),
        len(ordered) / (work.ended - work.started),
        ordered[len(ordered) // 2] * 1000,
        ordered[len(ordered) * 99 // 100] * 1000,
        work.statuses.total() - len(ordered),
    )


def main() -> None:
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Job)
    sys.stdout.buffer.write(msgspec.msgpack.encode(uvloop.run(_run(job))))


if __name__ == "__main__":
    main()
