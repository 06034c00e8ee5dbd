"""A key that was used for one request refuses every other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.changes.every import CHANGES
from tests.harness.clients.changes.requests import lance, long_stream, with_rows
from tests.harness.clients.idempotency_keys import Request, answer, new_key
from tests.harness.data.arrow import people, to_stream
from tests.harness.processes.servers import Server

State = Callable[[], Any]


def other_body(request: Request) -> Request:
    if isinstance(request.body, bytes):
        return replace(request, body=to_stream(people(77)))
    return replace(request, body={**(request.body or {}), "other": 1})


def check_refused(server: Server, request: Request, key: str) -> None:
    refused = request.send(server, key)
    assert refused.status_code == 422, refused.text
    if request.path.startswith("/iceberg"):
        error = refused.json()["error"]
        assert (error["type"], error["code"]) == ("UnprocessableEntityException", 422)
        assert key in error["message"]
    else:
        assert refused.json()["code"] == 13
        assert key in refused.json()["error"]


@pytest.mark.parametrize("name", ["Lance UpdateTable", "Lance InsertIntoTable", "Lance DropTable"])
def test_another_body_or_query_of_a_lance_request_is_refused(
    server: Server, namespace: str, state: State, name: str
) -> None:
    request, key = CHANGES[name](server, namespace), new_key()
    first = request.send(server, key)
    after = state()
    check_refused(server, other_body(request), key)
    check_refused(server, replace(request, params={**request.params, "x": "y"}), key)
    assert state() == after
    assert answer(request.send(server, key)) == answer(first)


@pytest.mark.parametrize("name", ["CreateNamespace", "ReplaceView", "RenameView", "CreateView"])
def test_another_body_or_query_of_an_iceberg_request_is_refused(
    server: Server, namespace: str, state: State, name: str
) -> None:
    request, key = CHANGES[f"Iceberg {name}"](server, namespace), new_key()
    first = request.send(server, key)
    after = state()
    check_refused(server, other_body(request), key)
    check_refused(server, replace(request, params={"x": "y"}), key)
    assert state() == after
    assert answer(request.send(server, key)) == answer(first)


def test_another_path_is_refused(server: Server, namespace: str, state: State) -> None:
    key = new_key()
    lance(f"namespace/{namespace}$a/create", {}).send(server, key).raise_for_status()
    after = state()
    check_refused(server, lance(f"namespace/{namespace}$b/create", {}), key)
    check_refused(server, lance(f"table/{namespace}$a/declare", {}), key)
    assert state() == after


def test_another_method_is_refused(server: Server, namespace: str, state: State) -> None:
    views.create(namespace).send(server).raise_for_status()
    request, key = views.replace(namespace, "v", "select 2"), new_key()
    request.send(server, key).raise_for_status()
    after = state()
    check_refused(server, replace(request, method="DELETE"), key)
    assert state() == after


def test_the_other_protocol_is_refused(server: Server, namespace: str, state: State) -> None:
    key = new_key()
    lance(f"namespace/{namespace}$a/create", {}).send(server, key).raise_for_status()
    after = state()
    check_refused(server, views.create(namespace), key)
    assert state() == after


def test_another_long_stream_is_refused(server: Server, namespace: str, state: State) -> None:
    path, key = with_rows(server, namespace), new_key()
    content = long_stream()
    request = lance(f"{path}/insert", content)
    first = request.send(server, key).raise_for_status()
    after = state()
    changed = bytearray(content)
    # In the last values of the last column, long after the first bytes are known.
    changed[-10_000] ^= 1
    check_refused(server, lance(f"{path}/insert", bytes(changed)), key)
    check_refused(server, lance(f"{path}/insert", to_stream(people(9))), key)
    assert state() == after
    assert answer(request.send(server, key)) == answer(first)


def test_the_key_of_a_refusal_refuses_another_request_too(server: Server, namespace: str) -> None:
    key = new_key()
    assert lance(f"table/{namespace}$t/drop").send(server, key).status_code == 404
    check_refused(server, lance(f"table/{namespace}$u/drop"), key)
