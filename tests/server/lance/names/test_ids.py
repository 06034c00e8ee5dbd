"""Ids in paths: how they are encoded and split, and which names are legal."""

import http.client
import json
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from tests.harness.data.tables import code, declare, new_name
from tests.harness.processes.servers import Server


def raw(server: Server, method: str, target: str, body: Any = None) -> tuple[int, Any]:
    """Send a target exactly as it is written here."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        content = b"" if body is None else json.dumps(body).encode()
        connection.putheader("content-length", str(len(content)))
        connection.endheaders(content)
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a+b", "a b"),
        ("a%20b", "a b"),
        ("a%2Bb", "a+b"),
        ("a%2bb", "a+b"),
        ("a%2Fb", "a/b"),
        ("a%25b", "a%b"),
        ("a%2520b", "a%20b"),
        ("a.b", "a.b"),
        ("...", "..."),
        ("%C3%A9", "é"),
        ("%E6%97%A5%E6%9C%AC", "日本"),
        ("%F0%9F%98%80", "\U0001f600"),
        ("a%3Fb%23c%26d%3D", "a?b#c&d="),
        ("a;b,c:d@e!f'(g)*", "a;b,c:d@e!f'(g)*"),
        ("a%5Cb", "a\\b"),
        ("%22", '"'),
    ],
)
def test_a_name_arrives_as_it_was_meant(
    server: Server, namespace: str, written: str, meant: str
) -> None:
    for kind, operation in (("namespace", "create"), ("table", "declare")):
        status, answer = raw(server, "POST", f"/v1/{kind}/{namespace}%24{written}/{operation}")
        assert status == 200, answer
    assert server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"] == [meant]
    assert server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"] == [meant]
    body = {"id": [namespace, meant]}
    status, answer = raw(server, "POST", f"/v1/table/{namespace}%24{written}/describe", body)
    assert status == 200, answer


@pytest.mark.parametrize(
    "written",
    ["a%1Fb", "%00", "a%0A", "%7F", "%C2%85", "a%09b", "%2E", "%2E%2E", "", "a%24", "%24a"],
)
def test_an_illegal_name_is_refused(server: Server, namespace: str, written: str) -> None:
    for kind, operation in (("namespace", "create"), ("table", "declare"), ("table", "exists")):
        target = f"/v1/{kind}/{namespace}%24{written}/{operation}"
        status, answer = raw(server, "POST", target)
        assert (status, answer["code"]) == (400, 13)


@pytest.mark.parametrize("written", ["%FF", "%C3", "%ED%A0%80"])
def test_a_name_is_utf8(server: Server, namespace: str, written: str) -> None:
    status, answer = raw(server, "POST", f"/v1/table/{namespace}%24{written}/declare")
    assert (status, answer["code"]) == (400, 13)


@pytest.mark.parametrize(
    ("name", "fits"), [("x" * 255, True), ("x" * 256, False), ("é" * 127, True), ("é" * 128, False)]
)
def test_a_name_has_at_most_255_bytes(
    server: Server, namespace: str, name: str, fits: bool
) -> None:
    for kind, operation in (("namespace", "create"), ("table", "declare")):
        answer = server.post(f"/v1/{kind}/{namespace}${name}/{operation}")
        assert answer.is_success if fits else code(answer) == (400, 13)


def test_an_endless_id_is_refused(server: Server) -> None:
    assert code(server.post("/v1/namespace/" + "$".join(["x" * 200] * 40) + "/exists")) == (400, 13)


@pytest.mark.parametrize("delimiter", [".", "::", "/", "--", " ", "é", "$$", "%"])
def test_any_delimiter_splits_ids(server: Server, namespace: str, delimiter: str) -> None:
    # A client would take a bare dot for a step within the path.
    root = quote(delimiter, safe="").replace(".", "%2E")
    id = f"{namespace}{root}child"
    answer = server.post(f"/v1/namespace/{id}/create", delimiter=delimiter)
    assert answer.status_code == 200, answer.text
    assert server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"] == ["child"]
    listed = server.get(f"/v1/namespace/{root}/list", delimiter=delimiter)
    assert namespace in listed.json()["namespaces"]


def test_another_delimiter_leaves_the_dollar_alone(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$plain")
    answer = server.post(f"/v1/table/{namespace}.a$b/declare", delimiter=".")
    assert answer.status_code == 200
    assert server.get(f"/v1/namespace/{namespace}/table/list").json()["tables"] == ["a$b", "plain"]


def test_an_empty_delimiter_is_refused(server: Server, namespace: str) -> None:
    assert code(server.post(f"/v1/namespace/{namespace}/exists", delimiter="")) == (400, 13)


def test_a_dot_as_the_delimiter_is_the_root_alone(server: Server, namespace: str) -> None:
    status, answer = raw(server, "GET", "/v1/namespace/./list?delimiter=.")
    assert status == 200
    assert namespace in answer["namespaces"]


def test_the_id_in_the_body_may_repeat_the_path(server: Server, namespace: str) -> None:
    body = {"id": [namespace]}
    assert server.post(f"/v1/namespace/{namespace}/describe", body).status_code == 200
    assert server.post("/v1/namespace/$/describe", {"id": []}).status_code == 200


@pytest.mark.parametrize("operation", ["declare", "register", "describe", "exists", "deregister"])
def test_an_id_in_the_body_that_disagrees_is_refused(
    server: Server, namespace: str, operation: str
) -> None:
    declare(server, f"{namespace}$t").commit(1)
    for id in ([], [namespace], ["t"], [namespace, "t", "x"], [f"{namespace}$t"]):
        body = {"id": id, "location": new_name()}
        assert code(server.post(f"/v1/table/{namespace}$t/{operation}", body)) == (400, 13)
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 200


@pytest.mark.parametrize("operation", ["drop", "version/list"])
def test_it_is_refused_where_no_body_is_expected_too(
    server: Server, namespace: str, operation: str
) -> None:
    declare(server, f"{namespace}$t").commit(1)
    answer = server.post(f"/v1/table/{namespace}$t/{operation}", {"id": [namespace, "other"]})
    assert code(answer) == (400, 13)
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 200
