"""Long uploads under a key: clients that are slow, that stop, and that come again."""

import contextlib
import socket
import time
from urllib.parse import urlsplit

import httpx

from tests.harness.clients.changes.requests import lance, long_stream, with_rows
from tests.harness.clients.idempotency_keys import HEADER, answer, at_once, new_key
from tests.harness.data.arrow import people, to_stream, versions
from tests.harness.processes.servers import Server


class Upload:
    """A chunked upload whose pieces a test sends one by one."""

    def __init__(self, server: Server, path: str, key: str) -> None:
        address = urlsplit(server.url)
        self._connection = socket.create_connection((address.hostname, address.port), timeout=30)
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        self._connection.sendall(f"{head}{HEADER}: {key}\r\n\r\n".encode())

    def send(self, piece: bytes) -> None:
        self._connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    def finish(self) -> tuple[int, bytes]:
        with contextlib.suppress(OSError):
            self._connection.sendall(b"0\r\n\r\n")
        found = b""
        while b"\r\n\r\n" not in found or not found.endswith(b"}"):
            part = self._connection.recv(65_536)
            assert part, found
            found += part
        self._connection.close()
        head, _, body = found.partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def break_off(self) -> None:
        self._connection.close()


def test_an_upload_whose_end_comes_late_replays_its_own_answer(
    server: Server, namespace: str
) -> None:
    path, key, content = with_rows(server, namespace), new_key(), long_stream()
    upload = Upload(server, f"/v1/{path}/insert", key)
    upload.send(content)
    # All rows are there, the end of the request is not.
    time.sleep(1)
    first = upload.finish()
    assert (first[0], b'"num_inserted_rows":100000' in first[1]) == (200, True)
    again = lance(f"{path}/insert", content).send(server, key)
    assert answer(again) == first
    assert versions(server, f"{namespace}$t") == [1, 2, 3]


def test_an_upload_that_breaks_off_leaves_its_key_free(server: Server, namespace: str) -> None:
    path, key, content = with_rows(server, namespace), new_key(), long_stream()
    upload = Upload(server, f"/v1/{path}/insert", key)
    upload.send(content[:4_500_000])
    time.sleep(0.2)
    upload.break_off()
    done = lance(f"{path}/insert", content).send(server, key)
    assert (done.status_code, done.json()["num_inserted_rows"]) == (200, 100_000)
    assert answer(lance(f"{path}/insert", content).send(server, key)) == answer(done)
    assert versions(server, f"{namespace}$t") == [1, 2, 3]


def test_an_upload_meets_the_same_one_still_on_its_way(server: Server, namespace: str) -> None:
    path, key, content = with_rows(server, namespace), new_key(), long_stream()
    slow = Upload(server, f"/v1/{path}/insert", key)
    slow.send(content[:4_500_000])

    def act(number: int) -> httpx.Response:
        if number == 0:
            time.sleep(0.3)
            slow.send(content[4_500_000:])
            status, body = slow.finish()
            return httpx.Response(status, content=body)
        return lance(f"{path}/insert", content).send(server, key)

    answers = at_once(act, 3)
    assert len({answer(each) for each in answers}) == 1
    assert answers[0].json()["num_inserted_rows"] == 100_000
    assert versions(server, f"{namespace}$t") == [1, 2, 3]


def test_the_same_bytes_in_other_pieces_are_the_same_request(
    server: Server, namespace: str
) -> None:
    path, key, content = with_rows(server, namespace), new_key(), to_stream(people(7, 8))
    upload = Upload(server, f"/v1/{path}/insert", key)
    for start in range(0, len(content), 100):
        upload.send(content[start : start + 100])
    first = upload.finish()
    assert first[0] == 200
    assert answer(lance(f"{path}/insert", content).send(server, key)) == first
