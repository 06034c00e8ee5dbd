"""Uploads that stop in the middle, and more of them than the server takes on."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import lance
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send, to_stream, versions
from tests.harness.data.tables import new_name
from tests.harness.processes import servers
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running(tmp_path_factory.mktemp("data")) as started:
        yield started


def go_away(server: Server, connection: socket.socket) -> None:
    server.wait_for_requests(1)
    # It has begun to write.
    time.sleep(0.5)
    connection.close()
    server.wait_until_idle()


def begin_upload(server: Server, path: str) -> socket.socket:
    """Send 6 MB of a longer upload, and then nothing."""
    rows = pa.table({"id": range(200_000), "name": ["x" * 30] * 200_000})
    content = to_stream(rows)
    address = urlsplit(server.url)
    connection = socket.create_connection((address.hostname, address.port), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content[:6_000_000])
    return connection


@pytest.mark.parametrize("operation", ["insert", "merge_insert"])
def test_a_client_that_goes_away_leaves_no_version_and_no_files(
    server: Server, operation: str
) -> None:
    table = new_name()
    location = send(server, f"/v1/table/{table}/create", people(1)).json()["location"]
    before = sorted(p.name for p in Path(location).rglob("*"))
    query = "?on=id&when_not_matched_insert_all=true"
    connection = begin_upload(server, f"/v1/table/{table}/{operation}{query}")
    go_away(server, connection)
    assert versions(server, table) == [1]
    assert sorted(p.name for p in Path(location).rglob("*")) == before
    assert lance.dataset(location).count_rows() == 1


def test_a_client_that_goes_away_leaves_no_table(server: Server) -> None:
    table, before = new_name(), sorted(server.lake.iterdir())
    go_away(server, begin_upload(server, f"/v1/table/{table}/create"))
    assert server.post(f"/v1/table/{table}/exists").status_code == 404
    assert sorted(server.lake.iterdir()) == before


def test_more_data_operations_than_allowed_are_told_to_come_back(tmp_path: Path) -> None:
    limits = {
        "PENSTOCK__SERVER__DATA_THREADS": "1",
        "PENSTOCK__SERVER__MAX_DATA_REQUESTS": "1",
    }
    with servers.running(tmp_path, environ=limits) as server:
        send(server, "/v1/table/t/create", people(1)).raise_for_status()
        connection = begin_upload(server, "/v1/table/t/insert")
        server.wait_for_requests(1)
        time.sleep(0.5)
        refused = send(server, "/v1/table/t/insert", people(2))
        assert (refused.status_code, refused.json()["code"]) == (429, 21)
        assert refused.headers["retry-after"] == "1"
        assert server.post("/v1/table/t/describe").status_code == 200
        connection.close()
        server.wait_until_idle()
        assert send(server, "/v1/table/t/insert", people(2)).status_code == 200
