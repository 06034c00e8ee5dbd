"""Writers on one table by HTTP, in a process of their own: append, or load it and try again."""

import asyncio
import subprocess
import sys
import time

import msgspec
import uvloop

from benchmarks.iceberg import requests
from benchmarks.iceberg.requests import Contended
from benchmarks.load import LoadFailed, prepare
from benchmarks.processes import start_module

STALL_SECONDS = 30


class _Job(msgspec.Struct):
    port: int
    path: str
    writers: int
    each: int
    seconds: float


class _Metadata(msgspec.Struct, rename="kebab"):
    last_sequence_number: int
    refs: dict[str, dict[str, object]] = {}
    snapshots: list[dict[str, object]] = []

    @property
    def head(self) -> int | None:
        ref = self.refs.get(requests.MAIN)
        return None if ref is None else int(str(ref["snapshot-id"]))


class _Answer(msgspec.Struct):
    metadata: _Metadata


_decode = msgspec.json.Decoder(_Answer).decode


def contend(port: int, path: str, writers: int, each: int, seconds: float) -> Contended:
    """Let writers commit to the table at a path until each has made so many commits."""
    job = _Job(port, path, writers, each, seconds)
    process = start_module("benchmarks.iceberg.writers", stderr=subprocess.PIPE)
    output, errors = process.communicate(msgspec.msgpack.encode(job))
    if process.returncode:
        raise LoadFailed(errors.decode(errors="replace").strip().splitlines()[-1])
    return msgspec.msgpack.decode(output, type=Contended)


class _Writer:
    """One connection of one writer."""

    def __init__(self, number: int, job: _Job) -> None:
        self._number, self._job = number, job
        self.made: list[int] = []
        self.refused = 0

    async def open(self) -> None:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._job.port)
        self._seen = await self.load()

    def close(self) -> None:
        self._writer.close()

    async def load(self) -> _Metadata:
        status, body = await self._ask(prepare("GET", self._job.path))
        if status != 200:
            raise LoadFailed(f"{status}: {body[:500]!r}")
        return _decode(body).metadata

    async def work(self, end: float) -> None:
        while len(self.made) < self._job.each and time.perf_counter() < end:
            id = requests.snapshot_id(self._number, len(self.made))
            body = requests.append(id, self._seen.head, self._seen.last_sequence_number + 1)
            status, answer = await self._ask(
                prepare("POST", self._job.path, msgspec.json.encode(body))
            )
            if status == 200:
                self.made.append(id)
                self._seen = _decode(answer).metadata
            elif status == 409:
                self.refused += 1
                self._seen = await self.load()
            else:
                raise LoadFailed(f"{status}: {answer[:500]!r}")

    async def _ask(self, request: bytes) -> tuple[int, bytes]:
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        at = head.find(b"content-length: ")
        if at >= 0:
            return status, await self._reader.readexactly(
                int(head[at + 16 : head.index(b"\r", at)])
            )
        body = b""
        while size := int(await self._reader.readline(), 16):
            body += await self._reader.readexactly(size)
            await self._reader.readline()
        await self._reader.readline()
        return status, body


async def _run(job: _Job) -> Contended:
    writers = [_Writer(number, job) for number in range(job.writers)]
    for each in writers:
        await each.open()
    started = time.perf_counter()
    async with asyncio.timeout(job.seconds + STALL_SECONDS):
        await asyncio.gather(*(each.work(started + job.seconds) for each in writers))
    seconds = time.perf_counter() - started
    there = {each["snapshot-id"] for each in (await writers[0].load()).snapshots}
    made = {id for each in writers for id in each.made}
    for each in writers:
        each.close()
    return Contended(len(made), seconds, sum(each.refused for each in writers), len(made - there))


def main() -> None:
    job = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=_Job)
    sys.stdout.buffer.write(msgspec.msgpack.encode(uvloop.run(_run(job))))


if __name__ == "__main__":
    main()
