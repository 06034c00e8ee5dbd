"""The header itself: what is a key, what is none, and where it means nothing."""

from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.requests import lance
from tests.harness.clients.idempotency_keys import HEADER, new_key
from tests.harness.processes.servers import Server

KEY = "0190163f-9a77-7d1b-8f2b-0b9d3f1c2a4e"
MALFORMED = (
    "1",
    "key",
    KEY[:-1],
    f"{KEY}0",
    KEY.replace("-", ""),
    f"{{{KEY}}}",
    f"urn:uuid:{KEY}",
    KEY.replace("-", "_"),
    f"{KEY}, {KEY}",
    f'"{KEY}"',
    "g" * 36,
    "x" * 5000,
    "0190163f-9a77-7d1b-8f2b-0b9d3f1c2aé",
)


def send(server: Server, path: str, headers: Any, body: Any) -> tuple[int, Any]:
    found = server.client.post(path, headers=headers, json=body)
    return found.status_code, found.json()


@pytest.mark.parametrize("value", MALFORMED)
def test_what_is_no_uuid_is_refused(server: Server, namespace: str, value: str) -> None:
    headers = {HEADER: value.encode("latin-1")}
    status, body = send(server, f"/v1/namespace/{namespace}$x/create", headers, {})
    assert (status, body["code"]) == (400, 13)
    request = views.create(namespace)
    status, body = send(server, request.path, headers, request.body)
    assert (status, body["error"]["type"]) == (400, "BadRequestException")
    assert server.post(f"/v1/namespace/{namespace}$x/exists").status_code == 404
    assert server.get(views.path(namespace)).status_code == 404


def test_a_header_that_comes_twice_is_refused(server: Server, namespace: str) -> None:
    for second in (KEY, new_key(), ""):
        headers = [(HEADER, KEY), (HEADER.lower(), second)]
        status, body = send(server, f"/v1/namespace/{namespace}$x/create", headers, {})
        assert (status, body["code"]) == (400, 13)
        request = views.create(namespace)
        assert send(server, request.path, headers, request.body)[0] == 400
    assert server.post(f"/v1/namespace/{namespace}$x/exists").status_code == 404


def test_an_empty_key_is_none(server: Server, namespace: str) -> None:
    headers, request = {HEADER: ""}, views.create(namespace)
    assert send(server, request.path, headers, request.body)[0] == 200
    assert send(server, request.path, headers, request.body)[0] == 409
    path = f"/v1/namespace/{namespace}$x/create"
    assert [send(server, path, headers, {})[0] for _ in range(2)] == [200, 409]


def test_any_version_of_uuid_and_either_case_is_a_key(server: Server, namespace: str) -> None:
    for number in range(1, 9):
        key = f"0190163f-9a77-{number}d1b-8f2b-{namespace[2:].ljust(12, '0')[:12]}"
        path = f"/v1/namespace/{namespace}$x{number}/create"
        first = server.client.post(path, json={}, headers={HEADER: key.upper()})
        assert first.status_code == 200
        assert server.client.post(path, json={}, headers={HEADER: key}).text == first.text


def test_reads_don_t_look_at_keys(server: Server, namespace: str) -> None:
    key = new_key()
    lance(f"namespace/{namespace}$x/create").send(server, key).raise_for_status()
    for value in (key, "no key"):
        headers = {HEADER: value}
        path = f"/v1/namespace/{namespace}$x"
        assert server.client.post(f"{path}/describe", json={}, headers=headers).status_code == 200
        assert server.client.post(f"{path}/exists", headers=headers).status_code == 200
        path = f"{views.ROOT}/namespaces/{namespace}"
        for each in (path, f"{path}/views", f"{path}/tables", f"{views.ROOT}/config"):
            assert server.client.get(each, headers=headers).status_code == 200
        assert server.client.head(path, headers=headers).status_code == 204
        assert server.client.get(f"{path}/views/v", headers=headers).status_code == 404
    # What a read saw under the key is not kept either.
    server.post(f"/v1/namespace/{namespace}$x/drop").raise_for_status()
    headers = {HEADER: new_key()}
    path = f"/v1/namespace/{namespace}$x/exists"
    assert server.client.post(path, headers=headers).status_code == 404
    server.post(f"/v1/namespace/{namespace}$x/create").raise_for_status()
    assert server.client.post(path, headers=headers).status_code == 200
