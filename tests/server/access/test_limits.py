"""Limits: how much one principal may ask for, and what a client may do to a connection."""

import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, TooManyRequests
from penstock.server.access.bootstrap_security import read_tls
from penstock.server.access.limits import QUERIES, UPLOADS, Limiter, Quotas
from penstock.settings.load import load
from tests.harness.data.arrow import send
from tests.harness.processes import servers
from tests.harness.processes.access import GuardedServer, connect, guarded, tls
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def read_all(connection: socket.socket) -> bytes:
    found = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionError:
            return found
        if not part:
            return found
        found += part


def test_a_principal_may_send_so_many_requests_a_second() -> None:
    now = 0.0
    limiter = Limiter(Quotas(requests_per_second=5), lambda: now)
    for _ in range(5):
        limiter.take("ann")
    with pytest.raises(TooManyRequests):
        limiter.take("ann")
    limiter.take("bob")
    now = 0.2
    limiter.take("ann")
    with pytest.raises(TooManyRequests):
        limiter.take("ann")
    now = 100.0
    for _ in range(5):
        limiter.take("ann")
    with pytest.raises(TooManyRequests):
        limiter.take("ann")


def test_a_principal_may_have_so_much_running_at_once() -> None:
    limiter = Limiter(Quotas(max_queries=2, max_uploads=1), lambda: 0.0)
    ends = [limiter.begin("ann", QUERIES) for _ in range(2)]
    with pytest.raises(TooManyRequests, match="ann has 2 queries running"):
        limiter.begin("ann", QUERIES)
    limiter.begin("bob", QUERIES)
    limiter.begin("ann", UPLOADS)
    ends[0]()
    limiter.begin("ann", QUERIES)


def test_an_address_has_only_so_many_wrong_credentials_a_second() -> None:
    now = 0.0
    limiter = Limiter(Quotas(failures_per_second=2), lambda: now)
    for _ in range(2):
        limiter.check_address("1.2.3.4")
        limiter.note_failure("1.2.3.4")
    with pytest.raises(TooManyRequests, match="this address"):
        limiter.check_address("1.2.3.4")
    limiter.check_address("1.2.3.5")
    now = 0.6
    limiter.check_address("1.2.3.4")


@pytest.fixture(scope="module")
def mean(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server that lets everybody do little."""
    environ = {
        "PENSTOCK__AUTH__FAILURES_PER_SECOND": "1",
        "PENSTOCK__AUTH__REQUESTS_PER_SECOND": "5",
        "PENSTOCK__AUTH__MAX_UPLOADS": "1",
    }
    with guarded(tmp_path_factory.mktemp("data"), environ=environ) as gate:
        yield gate


def test_too_many_requests_are_told_when_to_come_back(mean: GuardedServer) -> None:
    ann, admin = mean.as_(mean.key("ann")), mean.admin()
    answers = [ann.get("/v1/table") for _ in range(30)]
    refused = [a for a in answers if a.status_code == 429]
    assert len(answers) - len(refused) >= 5
    assert refused
    assert refused[0].json()["code"] == 21
    assert refused[0].headers["retry-after"] == "1"
    iceberg = [ann.get("/iceberg/v1/config") for _ in range(30)]
    told = [a.json()["error"]["type"] for a in iceberg if a.status_code == 429]
    assert set(told) == {"SlowDownException"}
    # Somebody else is not concerned.
    assert admin.get("/v1/table").status_code == 200
    time.sleep(1)
    admin.post("/v1/namespace/n/create").raise_for_status()
    with connect(mean.server) as first:
        key = admin.client.headers["authorization"]
        first.sendall(
            b"POST /v1/table/n$t/create HTTP/1.1\r\nHost: x\r\n"
            b"Authorization: %b\r\nContent-Length: 100\r\n\r\nx" % key.encode()
        )
        time.sleep(0.3)
        assert admin.client.post("/v1/table/n$u/create", content=b"x").status_code == 429
    deadline = time.monotonic() + 10
    while admin.client.post("/v1/table/n$u/create", content=b"x").status_code == 429:
        assert time.monotonic() < deadline, "the upload that was broken off still counts"
        time.sleep(0.3)


def test_who_guesses_is_slowed_down_and_others_behind_the_same_address_are_not(
    mean: GuardedServer,
) -> None:
    wrong = "pstk_" + "0" * 16 + "_" + "0" * 64
    known = mean.key("known")
    asked: list[Callable[[], httpx.Response]] = [
        lambda: mean.ask("/v1/table", wrong, method="GET"),
        lambda: mean.ask("/v1/table", method="GET"),
        lambda: mean.ask("/v1/namespace/n/create", "a.b.c"),
        lambda: mean.ask("/iceberg/v1/config", wrong, method="GET"),
        lambda: mean.token(grant_type="client_credentials", client_secret=wrong),
        lambda: mean.token(grant_type="client_credentials"),
        lambda: mean.token(grant_type="password", username="ann"),
        lambda: mean.token(),
        lambda: mean.token(grant_type="client_credentials", client_id="x", client_secret=known),
    ]
    others = [mean.as_(mean.key(f"other{number}")) for number in range(len(asked))]
    for other in others:
        other.get("/v1/table").raise_for_status()
    for ask, other in zip(asked, others, strict=True):
        refused = [answer for _ in range(10) if (answer := ask()).status_code == 429]
        assert refused[0].headers["retry-after"] == "1"
        assert other.get("/v1/table").status_code == 200
    until(lambda: mean.ask("/v1/table", method="GET").status_code == 401)


def test_tokens_count_as_requests_of_their_principal(mean: GuardedServer) -> None:
    key = mean.key("fetcher")
    fetcher = mean.as_(key)
    # Others may have come from here with wrong ones a moment ago.
    until(lambda: fetcher.get("/v1/table").status_code == 200)
    form = {"grant_type": "client_credentials", "client_secret": key}
    answers = [mean.token(**form).status_code for _ in range(30)]
    assert {*answers} == {200, 429}


def test_little_is_read_of_who_asks_for_a_token(mean: GuardedServer) -> None:
    form = {"grant_type": "client_credentials", "client_secret": "x" * 1024 * 1024}
    answer = mean.token(**form)
    assert answer.status_code == 413
    assert "max_json_bytes" not in answer.text


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server without authentication and with little patience."""
    environ = {
        "PENSTOCK__SERVER__HEAD_SECONDS": "1",
        "PENSTOCK__SERVER__READ_SECONDS": "1",
        "PENSTOCK__SERVER__MAX_HEAD_BYTES": "8192",
        "PENSTOCK__SERVER__ALLOWED_ORIGINS": "https://console.example",
    }
    with servers.running(tmp_path_factory.mktemp("data"), environ=environ) as server:
        yield server


@pytest.mark.parametrize("pieces", [1, 40])
def test_a_huge_head_is_refused(strict: Server, pieces: int) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + b"".join(
        b"x-%d: %b\r\n" % (n, b"y" * 500) for n in range(40)
    )
    with connect(strict) as connection:
        size = len(head) // pieces + 1
        for start in range(0, len(head), size):
            try:
                connection.sendall(head[start : start + size])
            except ConnectionError:
                break
            time.sleep(0.01 if pieces > 1 else 0)
        if pieces == 1:
            connection.sendall(b"\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 431 ")


def test_a_head_within_the_limit_is_served(strict: Server) -> None:
    headers = {f"x-{n}": "y" * 500 for n in range(10)}
    assert strict.client.get("/healthz", headers=headers).status_code == 200


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/namespace/x/create HTTP/1.1\r\nContent-Length: 9\r\n\r\nx",
    ],
    ids=["nothing", "half a head", "half a body"],
)
@pytest.mark.slow
def test_a_client_that_falls_silent_is_cut_off(strict: Server, first: bytes) -> None:
    with connect(strict) as connection:
        connection.sendall(first)
        started = time.monotonic()
        read_all(connection)
        assert 0.5 < time.monotonic() - started < 6


def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(strict: Server) -> None:
    with connect(strict) as connection:
        started = time.monotonic()
        try:
            for byte in b"GET /healthz HTTP/1.1\r\nHost: a-very-long-name":
                connection.sendall(bytes([byte]))
                time.sleep(0.2)
        except ConnectionError:
            pass
        assert time.monotonic() - started < 8
        assert strict.get("/healthz").status_code == 200


@pytest.mark.slow
def test_a_slow_but_steady_upload_is_served(strict: Server) -> None:
    body = b'{"properties": {}}'
    with connect(strict) as connection:
        connection.sendall(
            b"POST /v1/namespace/slow/create HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        for start in range(0, len(body), 3):
            time.sleep(0.4)
            connection.sendall(body[start : start + 3])
        assert b"200 OK" in connection.recv(4096)


def test_everything_works_over_tls_long_bodies_too(tmp_path: Path) -> None:
    environ = {**tls(tmp_path), "PENSTOCK__SERVER__HEAD_SECONDS": "3"}
    certificate = environ["PENSTOCK__SERVER__TLS_CERTIFICATE"]
    with guarded(tmp_path / "data", environ=environ) as gate:
        assert gate.server.url.startswith("https://")
        port = urlsplit(gate.server.url).port
        trusted = ssl.create_default_context(cafile=certificate)
        with httpx.Client(base_url=f"https://localhost:{port}", verify=trusted) as client:
            assert client.get("/healthz").status_code == 200
        admin = gate.admin()
        admin.post("/v1/namespace/n/create").raise_for_status()
        rows = pa.table({"id": range(300_000), "text": ["x" * 40] * 300_000})
        send(admin, "/v1/table/n$t/create", rows).raise_for_status()
        found = admin.client.post("/v1/table/n$t/query", json={"k": 300_000}, timeout=60)
        assert found.status_code == 200
        assert pa.ipc.open_file(found.content).read_all().num_rows == 300_000
        # The connection goes on after it.
        assert admin.get("/v1/table").json()["tables"] == ["n$t"]
        with connect(gate.server) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" not in read_all(plain)
        with connect(gate.server) as silent:
            # Who never begins with TLS is cut off as who sends no head.
            assert read_all(silent) == b""


def test_a_certificate_without_its_key_is_refused() -> None:
    settings = load(None, {"PENSTOCK__SERVER__TLS_CERTIFICATE": "x"}, {}).settings
    with pytest.raises(InvalidRequest, match="belong together"):
        read_tls(settings)


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://localhost.evil.example:2333", 403),
        ("null", 403),
        ("http://[", 403),
        ("http://127.0.0.1:5000", 200),
        ("http://localhost", 200),
    ],
)
def test_pages_from_elsewhere_may_not_use_a_server_without_authentication(
    strict: Server, origin: str, status: int
) -> None:
    for path in ("/v1/namespace/$/exists", "/iceberg/v1/oauth/tokens"):
        headers = {"Origin": origin, "Content-Type": "text/plain"}
        answer = strict.client.post(path, headers=headers)
        assert (answer.status_code == 403) == (status == 403), answer.text


@pytest.mark.parametrize(
    ("host", "is_served"),
    [
        ("evil.example:2333", False),
        ("localhost.evil.example", False),
        ("evil.example.", False),
        ("console.example:80", True),
        ("localhost:2333", True),
        ("penstock.localhost", True),
        ("penstock", True),
        ("127.0.0.1:2333", True),
        ("[::1]:2333", True),
    ],
)
def test_a_public_name_that_points_to_this_machine_is_not_ours(
    strict: Server, host: str, is_served: bool
) -> None:
    for path in ("/v1/table", "/iceberg/v1/config"):
        answer = strict.client.get(path, headers={"Host": host})
        assert answer.status_code == (200 if is_served else 403), answer.text
