"""Namespaces over HTTP, on both databases."""

import httpx
import pytest

from tests.harness.servers import Server


def code(response: httpx.Response) -> tuple[int, int]:
    return response.status_code, response.json()["code"]


def test_a_created_namespace_is_described_and_listed(server: Server, namespace: str) -> None:
    made = server.post(f"/v1/namespace/{namespace}$child/create", {"properties": {"owner": "ann"}})
    assert made.json()["properties"] == {"owner": "ann"}
    described = server.post(f"/v1/namespace/{namespace}$child/describe")
    assert described.json() == {"properties": {"owner": "ann"}}
    assert server.get(f"/v1/namespace/{namespace}/list").json() == {"namespaces": ["child"]}


def test_create_refuses_what_exists(server: Server, namespace: str) -> None:
    assert code(server.post(f"/v1/namespace/{namespace}/create")) == (409, 2)


@pytest.mark.parametrize("mode", ["ExistOk", "exist_ok", "EXISTOK"])
def test_exist_ok_keeps_the_existing(server: Server, namespace: str, mode: str) -> None:
    body = {"mode": mode, "properties": {"new": "yes"}}
    assert server.post(f"/v1/namespace/{namespace}/create", body).json() == {"properties": {}}
