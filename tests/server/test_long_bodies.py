"""Long bodies, which a worker takes from the socket itself: the connection stays in order."""

import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send, to_stream
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.servers import Server

PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running(tmp_path_factory.mktemp("data")) as started:
        yield started


def connect(server: Server) -> http.client.HTTPConnection:
    address = urlsplit(server.url)
    assert address.hostname
    return http.client.HTTPConnection(address.hostname, address.port, timeout=30)


def dial(server: Server) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def numbers(megabytes: int) -> pa.Table:
    """So many megabytes, each a batch, of numbers that are all different."""
    step = 131_072
    batches = [
        pa.record_batch({"id": np.arange(n * step, (n + 1) * step)}) for n in range(megabytes)
    ]
    return pa.Table.from_batches(batches)


def head(path: str, length: int) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode()


def read_statuses(connection: socket.socket, count: int) -> list[int]:
    """The status of each of so many answers on one connection."""
    statuses = []
    file = connection.makefile("rb")
    for _ in range(count):
        statuses.append(int(file.readline().split()[1]))
        length = 0
        while (line := file.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        file.read(length)
    return statuses


@pytest.mark.parametrize("size", [1, 1000, 10_000_000])
def test_every_row_arrives_whatever_the_pieces(server: Server, size: int) -> None:
    table, rows = new_name(), numbers(9)
    content = to_stream(rows)
    # Small pieces only where they matter: around the length from which the socket is lent.
    start, end = 4 * 2**20 - 2000, 4 * 2**20 + 2000
    pieces = [content[:start], *_cut(content[start:end], size), *_cut(content[end:], 10**6)]
    with dial(server) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(head(f"/v1/table/{table}/create", len(content)))
        for piece in pieces:
            connection.sendall(piece)
        assert read_statuses(connection, 1) == [200]
    answer = server.post(f"/v1/table/{table}/query", {})
    assert pa.ipc.open_file(answer.content).read_all() == rows


def _cut(content: bytes, size: int) -> list[bytes]:
    return [content[i : i + size] for i in range(0, len(content), size)]


def test_a_connection_goes_on_after_a_long_upload_and_a_long_answer(server: Server) -> None:
    connection, table, rows = connect(server), new_name(), numbers(20)
    for path, content in (
        (f"/v1/table/{table}/create", to_stream(rows)),
        (f"/v1/table/{table}/insert", to_stream(rows)),
        (f"/v1/table/{table}/count_rows", b""),
        (f"/v1/table/{table}/query", b"{}"),
        (f"/v1/table/{table}/describe", b""),
    ):
        connection.request("POST", path, content)
        answer = connection.getresponse()
        found = answer.read()
        assert answer.status == 200, found
        if path.endswith("count_rows"):
            assert int(found) == 2 * rows.num_rows
        if path.endswith("query"):
            assert pa.ipc.open_file(found).read_all().num_rows == 2 * rows.num_rows


def test_a_request_that_follows_in_the_same_packet_is_answered(server: Server) -> None:
    content = to_stream(numbers(8))
    with dial(server) as connection:
        connection.sendall(head(f"/v1/table/{new_name()}/create", len(content)) + content + PROBE)
        assert read_statuses(connection, 2) == [200, 200]


@pytest.mark.parametrize("kind", ["wrong columns", "no such table", "damaged"])
def test_what_is_left_of_a_refused_body_is_not_taken_for_a_request(
    server: Server, kind: str
) -> None:
    table, rows = new_name(), numbers(10)
    send(server, f"/v1/table/{table}/create", rows.slice(0, 1)).raise_for_status()
    if kind == "wrong columns":
        rows = rows.rename_columns(["other"])
    content = to_stream(rows)
    if kind == "damaged":
        content = content[: 6 * 2**20] + b"x" * (len(content) - 6 * 2**20)
    # What is left over looks like requests.
    content += PROBE * 100_000
    path = f"/v1/table/{'missing' if kind == 'no such table' else table}/insert"
    with dial(server) as connection:
        connection.sendall(head(path, len(content)))
        connection.sendall(content)
        connection.sendall(PROBE)
        first, second = read_statuses(connection, 2)
        assert (first, second) == (404 if kind == "no such table" else 400, 200)
        connection.settimeout(0.3)
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_a_server_can_stop_in_the_middle_of_an_upload(tmp_path: Path) -> None:
    environ = {"PENSTOCK__SERVER__STOP_SECONDS": "1"}
    content = to_stream(numbers(10))
    with servers.running(tmp_path, environ=environ) as server:
        with dial(server) as connection:
            connection.sendall(head("/v1/table/t/create", len(content)) + content[: 6 * 2**20])
            server.wait_for_requests(1)
            started = time.monotonic()
            assert server.stop() == 0
            # Without the setting it would be half a minute.
            assert time.monotonic() - started < 20
        assert [path.name for path in server.lake.iterdir()] == ["_penstock.json"]


def test_a_small_insert_is_answered_while_an_upload_stands_still(server: Server) -> None:
    content = to_stream(numbers(10))
    with dial(server) as connection:
        path = f"/v1/table/{new_name()}/create"
        connection.sendall(head(path, len(content)) + content[: 6 * 2**20])
        made = send(server, f"/v1/table/{new_name()}/create", people(1))
        assert made.status_code == 200
        connection.sendall(content[6 * 2**20 :])
        assert read_statuses(connection, 1) == [200]
