"""Starting, watching and stopping a real server."""

import json
import shutil
import signal
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def send_half_a_request(server: Server) -> socket.socket:
    """Open a request whose body is not complete yet."""
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=60)
    connection.sendall(
        b"POST /v1/namespace/late/create HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{"
    )
    return connection


def listens(server: Server) -> bool:
    address = urlsplit(server.url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=60).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_server_with_no_arguments_keeps_everything_in_its_data_folder(tmp_path: Path) -> None:
    with servers.running(tmp_path / "penstock-data") as server:
        server.post("/v1/namespace/a/create").raise_for_status()
    assert (tmp_path / "penstock-data" / "catalog.sqlite").is_file()
    with servers.running(tmp_path / "penstock-data") as server:
        assert server.post("/v1/namespace/a/exists").status_code == 200


def test_it_says_where_it_serves_and_that_there_is_no_authentication(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.wait_for_output("no authentication")
    assert server.url.startswith("http://127.0.0.1:")


def test_a_stop_finishes_what_is_in_flight(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        connection = send_half_a_request(server)
        server.wait_for_requests(1)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not listens(server), "it still takes connections")
        connection.sendall(b"}")
        answer = connection.recv(4096)
        assert b"200 OK" in answer
        assert server.process.wait(60) == 0
    with servers.running(tmp_path) as server:
        assert server.post("/v1/namespace/late/exists").status_code == 200


def test_a_stop_does_not_wait_for_ever(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ={"PENSTOCK__SERVER__STOP_SECONDS": "1"}) as server:
        connection = send_half_a_request(server)
        server.wait_for_requests(1)
        started = time.monotonic()
        assert server.stop() == 0
        # Without the setting it would be half a minute.
        assert time.monotonic() - started < 20
        connection.close()


def test_a_client_that_goes_away_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        connection = send_half_a_request(server)
        server.wait_for_requests(1)
        connection.close()
        server.wait_until_idle()
        assert server.post("/v1/namespace/late/exists").status_code == 404
        assert "rror" not in server.output()


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with servers.running(tmp_path / "a") as server:
        port = str(urlsplit(server.url).port)
        with pytest.raises(AssertionError, match="cannot listen on") as refused:
            servers.start(tmp_path / "b", "--port", port)
    assert "--port" in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_a_database_that_does_not_answer_is_one_clear_line(tmp_path: Path) -> None:
    url = f"postgresql://nobody:secret@/none?host={tmp_path}"
    with pytest.raises(AssertionError, match="PostgreSQL does not answer") as refused:
        servers.start(tmp_path, database=url)
    assert "secret" not in str(refused.value)
    assert "Traceback" not in str(refused.value)


def test_health_and_readiness(server: Server) -> None:
    assert server.get("/healthz").json() == {"status": "ok"}
    assert server.get("/readyz").json() == {"status": "ok"}


def test_readiness_fails_when_the_lake_is_no_folder(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        shutil.rmtree(server.lake)
        server.lake.write_text("in the way")
        found = server.get("/readyz")
    assert found.status_code == 503
    assert "storage" in found.json()


def test_metrics_count_requests_by_operation_and_status(server: Server) -> None:
    server.post("/v1/namespace/none/exists")
    lines = server.get("/metrics").text.splitlines()
    assert any(
        line.startswith('penstock_requests_total{operation="NamespaceExists",status="404"}')
        for line in lines
    )
    assert any(
        line.startswith('penstock_request_seconds_bucket{le="0.001",operation="NamespaceExists"}')
        for line in lines
    )
    assert any(line.startswith("penstock_database_up{") and line.endswith(" 1.0") for line in lines)
    assert 'penstock_catalog_work{kind="unsettled_versions"} 0.0' in lines


def test_json_logs_tell_each_request_in_one_line(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ={"PENSTOCK__LOG__FORMAT": "json"}) as server:
        server.client.post(
            "/v1/namespace/a/create",
            headers={"x-request-id": "r-1", "x-lance-ctx-trace_id": "t-1"},
        )
        printed = server.wait_for_output('"r-1"')
        lines = [json.loads(line) for line in printed.splitlines() if line[:1] == "{"]
    (line,) = [line for line in lines if line.get("request_id") == "r-1"]
    assert line["operation"] == "CreateNamespace"
    assert (line["status"], line["trace_id"]) == (200, "t-1")
    assert line["milliseconds"] > 0


def test_requests_are_not_logged_unless_asked_for(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        server.get("/healthz")
    assert "/healthz" not in server.rest_of_output()


@pytest.mark.slow
def test_a_connection_outlasts_the_pause_of_a_client_that_polls(tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
            for pause in (6, 0):
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(1000).startswith(b"HTTP/1.1 200")
                time.sleep(pause)
