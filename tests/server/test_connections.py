"""Many connections, silent ones, and those that say too much: real sockets, a real server."""

import contextlib
import resource
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, guarded, tls
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until

FEW = {
    "PENSTOCK__SERVER__MAX_CONNECTIONS": "40",
    "PENSTOCK__SERVER__MAX_ADDRESS_CONNECTIONS": "20",
    "PENSTOCK__SERVER__READ_SECONDS": "1",
    "PENSTOCK__SERVER__HEAD_SECONDS": "2",
}
HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    """A server that wants credentials, and takes few connections."""
    with guarded(tmp_path_factory.mktemp("data"), environ=FEW) as found:
        yield found


def dial(server: Server, source: str = "127.0.0.1") -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection(
        (address.hostname, address.port), timeout=20, source_address=(source, 0)
    )


@contextlib.contextmanager
def crowded(server: Server, count: int, addresses: int = 1) -> Iterator[list[socket.socket]]:
    """So many connections that say nothing, from so many addresses of this machine."""
    found = [dial(server, f"127.0.0.{2 + number % addresses}") for number in range(count)]
    try:
        yield found
    finally:
        for connection in found:
            connection.close()


def ends(connection: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection within a time."""
    connection.settimeout(seconds)
    try:
        while connection.recv(65536):
            pass
    except TimeoutError:
        return False
    except ConnectionError:
        pass
    return True


def trickle(connection: socket.socket, part: bytes, times: int, pause: float) -> None:
    for _ in range(times):
        time.sleep(pause)
        connection.sendall(part)


def read_answer(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


@pytest.mark.parametrize(("count", "addresses"), [(60, 1), (200, 5)])
def test_silent_connections_keep_nobody_out(
    gate: GuardedServer, count: int, addresses: int
) -> None:
    known = gate.as_(gate.key("known"))
    known.get("/v1/table").raise_for_status()
    with crowded(gate.server, count, addresses) as silent:
        assert httpx.get(f"{gate.server.url}/healthz").status_code == 200
        assert gate.as_(gate.key("new")).get("/v1/table").status_code == 200
        # Whoever came first had to go, and who is known has kept the connection.
        assert ends(silent[0], 1)
        assert known.get("/v1/table").status_code == 200


def test_silent_handshakes_keep_nobody_out(tmp_path: Path) -> None:
    environ = {**tls(tmp_path), **FEW, "PENSTOCK__SERVER__HEAD_SECONDS": "20"}
    with (
        guarded(tmp_path / "data", environ=environ) as gate,
        crowded(gate.server, 60) as silent,
    ):
        assert ends(silent[0], 5)
        assert not ends(silent[-1], 0.1)
        assert gate.as_(gate.key("new")).get("/v1/table").status_code == 200


def test_a_server_without_descriptors_makes_room_and_does_not_spin(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.get("/healthz").raise_for_status()
        pid = server.process.pid
        used = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 20, used + 20))
        with crowded(server, 60):
            before = cpu_seconds(pid)
            time.sleep(1)
            assert cpu_seconds(pid) - before < 0.5
            until(lambda: is_served(server), "nobody gets in")


def is_served(server: Server) -> bool:
    try:
        return httpx.get(f"{server.url}/healthz", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


# What a client sends, and what after the answer.
SILENT = {
    "nothing more": (HEAD + b"\r\n", b""),
    "an empty line": (HEAD + b"\r\n", b"\r\n"),
    "less than the body": (
        b"POST /v1/table/t/insert HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n",
        b"{",
    ),
    "no body after a 100": (
        b"POST /v1/namespace/a/create HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n"
        b"Expect: 100-continue\r\n\r\n",
        b"",
    ),
}


@pytest.mark.slow
def test_who_has_shown_no_credentials_is_not_waited_for(gate: GuardedServer) -> None:
    with contextlib.ExitStack() as stack:
        waiting = {how: stack.enter_context(dial(gate.server)) for how in SILENT}
        for how, (first, then) in SILENT.items():
            waiting[how].sendall(first)
            read_answer(waiting[how])
            waiting[how].sendall(then)
        assert [how for how in SILENT if not ends(waiting[how], 9)] == []


def test_a_body_that_trickles_in_after_its_refusal_is_not_read_for_ever(
    gate: GuardedServer,
) -> None:
    with dial(gate.server) as connection:
        connection.sendall(
            b"POST /v1/table/n$t/insert HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"
        )
        assert b" 401 " in read_answer(connection)
        with pytest.raises(ConnectionError):
            trickle(connection, b"x", 30, 0.2)


@pytest.mark.slow
def test_who_takes_no_answers_is_cut_off(gate: GuardedServer) -> None:
    key = gate.key("greedy")
    gate.grant("greedy", "reader")
    asked = b"GET /metrics HTTP/1.1\r\nHost: x\r\nx-api-key: %b\r\n\r\n" % key.encode()
    with dial(gate.server) as connection:
        connection.sendall(asked * 1000)
        time.sleep(5)
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 20):
                found += part
    assert 0 < found.count(b"HTTP/1.1 200") < 1000


@pytest.mark.parametrize(("count", "status"), [(200, b"200"), (300, b"431"), (20_000, b"431")])
def test_a_head_has_so_many_headers(gate: GuardedServer, count: int, status: bytes) -> None:
    with dial(gate.server) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(HEAD + b"x:y\r\n" * count + b"\r\n")
        assert read_answer(connection).startswith(b"HTTP/1.1 %b " % status)


CHUNKED = b"POST /v1/namespace/a/exists HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("beside", [b"2;", b"2\r\n{}\r\n0\r\nx: "], ids=["extension", "trailer"])
def test_what_is_around_a_body_is_bounded_as_a_head_is(gate: GuardedServer, beside: bytes) -> None:
    with dial(gate.server) as connection:
        connection.sendall(CHUNKED + beside)
        with pytest.raises(ConnectionError):
            trickle(connection, b"a" * 10_000, 200, 0.01)


def test_too_many_trailers_are_refused(gate: GuardedServer) -> None:
    with dial(gate.server) as connection:
        connection.sendall(CHUNKED + b"2\r\n{}\r\n0\r\n" + b"x:y\r\n" * 300 + b"\r\n")
        assert b" 431 " in read_answer(connection)


def test_what_follows_a_body_is_no_header(gate: GuardedServer) -> None:
    key = gate.key("trailing").encode()
    with dial(gate.server) as connection:
        connection.sendall(CHUNKED + b"2\r\n{}\r\n0\r\nx-api-key: %b\r\n\r\n" % key)
        assert b" 401 " in read_answer(connection)


@pytest.mark.parametrize(
    "twice",
    [
        b"Host: localhost\r\n",
        b"Content-Length: 2\r\nContent-Length: 2\r\n",
        b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length: 2\r\nAuthorization: a\r\nAuthorization: b\r\n",
        b"Content-Length: 2\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n",
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(gate: GuardedServer, twice: bytes) -> None:
    with dial(gate.server) as connection:
        connection.sendall(b"POST /v1/namespace/a/create HTTP/1.1\r\nHost: x\r\n")
        connection.sendall(twice + b"\r\n{}")
        assert read_answer(connection).startswith(b"HTTP/1.1 400 ")


def test_a_thousand_requests_at_once_are_answered_one_by_one(gate: GuardedServer) -> None:
    with dial(gate.server) as connection:
        connection.sendall((HEAD + b"\r\n") * 1000)
        found = b""
        while found.count(b"HTTP/1.1 200") < 1000:
            found += connection.recv(1 << 20)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.slow
def test_only_modern_tls_is_spoken(tmp_path: Path) -> None:
    with servers.running(tmp_path / "data", environ=tls(tmp_path)) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with context.wrap_socket(dial(server)) as connection:
            cipher = connection.cipher()
            assert cipher is not None
            assert "GCM" in cipher[0] or "CHACHA20" in cipher[0]
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.options |= ssl.OP_NO_TLSv1_2 | ssl.OP_NO_TLSv1_3
        with pytest.raises(ssl.SSLError):
            context.wrap_socket(dial(server))
