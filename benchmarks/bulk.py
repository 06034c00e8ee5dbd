"""One large table in and out: through Penstock, and by pylance alone in a process of its own.

In also through a bare socket, which shows what of the difference is not Penstock's.
"""

import http.client
import os
import shutil
import time
from pathlib import Path

import lance
import msgspec
import pyarrow as pa

from benchmarks import servers
from benchmarks.inprocess import measure_pylance
from benchmarks.memory import prepare_memory
from benchmarks.rows import ARROW_STREAM, Bulk, bulk, small_rows, to_stream
from benchmarks.servers import Server

STALL_SECONDS = 300
# What an Arrow file has before the stream in it.
MAGIC = b"ARROW1\x00\x00"


class _Body:
    """An answer that is read into Arrow's memory, without a copy in between."""

    closed = False

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self._reply = reply

    def read(self, size: int) -> pa.Buffer:
        buffer = pa.allocate_buffer(size, resizable=True)
        view, held = memoryview(buffer), 0
        while held < size and (got := self._reply.readinto(view[held:])):
            held += got
        view.release()
        buffer.resize(held)
        return buffer


class BulkRound(msgspec.Struct):
    """Seconds, and the most memory that a server held that had just been started."""

    write_seconds: float
    read_seconds: float
    write_peak_mb: float
    read_peak_mb: float
    pylance_write_seconds: float
    pylance_read_seconds: float
    socket_write_seconds: float


def measure_bulk(folder: Path, size_bytes: int) -> BulkRound:
    """Write and read once each way; the files are gone afterwards."""
    data = bulk(size_bytes)
    alone, served, received = folder / "alone.lance", folder / "served", folder / "received.lance"
    os.sync()
    pylance_write = measure_pylance("write", str(alone), size_bytes)
    os.sync()
    with servers.penstock(served) as server:
        server.call("POST", "/v1/namespace/ns/create", {})
        _warm_up(server)
        prepare_memory(folder, size_bytes)
        write = _upload(server, data)
        write_peak = server.peak_mb()
        assert server.call("POST", "/v1/table/ns%24bulk/count_rows", {}) == data.rows
    os.sync()
    with servers.receiver(received) as server:
        prepare_memory(folder, size_bytes)
        socket_write = _upload(server, data)
    assert lance.dataset(received).count_rows() == data.rows
    shutil.rmtree(received)
    os.sync()
    pylance_read = measure_pylance("read", str(alone), size_bytes)
    with servers.penstock(served) as server:
        _warm_up(server)
        prepare_memory(folder, size_bytes)
        read = _download(server, data)
        read_peak = server.peak_mb()
    shutil.rmtree(alone)
    shutil.rmtree(served)
    return BulkRound(write, read, write_peak, read_peak, pylance_write, pylance_read, socket_write)


def _warm_up(server: Server) -> None:
    """Let it load its libraries, as pylance alone has done before its clock starts."""
    path = "/v1/table/ns%24small"
    server.fetch("POST", f"{path}/create?mode=overwrite", to_stream(small_rows()))
    server.fetch("POST", f"{path}/query", msgspec.json.encode({"k": 1, "vector": {}}))


def _upload(server: Server, data: Bulk) -> float:
    length, pieces = data.stream()
    headers = {"Content-Type": ARROW_STREAM, "Content-Length": str(length)}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=STALL_SECONDS)
    started = time.perf_counter()
    connection.request("POST", "/v1/table/ns%24bulk/create", pieces, headers)
    reply = connection.getresponse()
    text = reply.read()
    seconds = time.perf_counter() - started
    connection.close()
    assert reply.status == 200, text
    return seconds


def _download(server: Server, data: Bulk) -> float:
    body = msgspec.json.encode({"k": data.rows, "vector": {}})
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=STALL_SECONDS)
    started = time.perf_counter()
    connection.request(
        "POST", "/v1/table/ns%24bulk/query", body, {"Content-Type": "application/json"}
    )
    reply = connection.getresponse()
    assert reply.status == 200, reply.read()
    assert reply.read(len(MAGIC)) == MAGIC
    with pa.ipc.open_stream(pa.PythonFile(_Body(reply), "r")) as batches:
        rows = sum(batch.num_rows for batch in batches)
    seconds = time.perf_counter() - started
    connection.close()
    assert rows == data.rows, rows
    return seconds
