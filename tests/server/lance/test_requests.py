"""Requests as such: bodies, limits, routes, methods, request ids and traces."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.data.tables import Table, code, new_name
from tests.harness.processes.servers import Server, running


def test_a_body_is_optional(server: Server, namespace: str) -> None:
    for content in (b"", b"null", b" null\n", b"{}", b" \r\n"):
        answer = server.send(f"/v1/namespace/{namespace}/describe", content)
        assert answer.json() == {"properties": {}}


def test_a_body_is_optional_where_none_is_expected(table: Table) -> None:
    for content in (b"", b"null", b"{}", b'{"anything": 1}'):
        path = f"/v1/table/{table.id}/version/list"
        assert table.server.send(path, content).json() == {"versions": []}


def test_unknown_fields_are_ignored(server: Server, namespace: str) -> None:
    body = {"unknown": [1, {"a": None}], "identity": {"api_key": "k"}, "context": {"a": "b"}}
    assert server.post(f"/v1/namespace/{namespace}/describe", body).status_code == 200


def test_null_is_the_same_as_absent(server: Server, namespace: str) -> None:
    nothing = dict.fromkeys(("id", "mode", "properties", "context", "identity"))
    assert server.post(f"/v1/namespace/{namespace}$x/create", nothing).status_code == 200


@pytest.mark.parametrize("content", [b"[]", b"1", b'"x"', b"true", b"[{}]"])
def test_a_body_is_an_object(server: Server, namespace: str, content: bytes) -> None:
    answer = server.send(f"/v1/namespace/{namespace}/describe", content)
    assert code(answer) == (400, 13)


@pytest.mark.parametrize(
    ("content", "position"),
    [(b'{"mode": }', "9"), (b'{"a": 1,, }', "8"), (b"{'a'}", "1"), (b"hello", "0")],
)
def test_malformed_json_is_refused_with_its_position(
    server: Server, namespace: str, content: bytes, position: str
) -> None:
    answer = server.send(f"/v1/namespace/{namespace}/create", content)
    assert code(answer) == (400, 13)
    assert position in answer.json()["error"]


@pytest.mark.parametrize(
    "content", [b"{", b'{"a"', b"\xff", b'{"mode": "\xff"}', b"{} {}", b"[" * 100_000, b"nul"]
)
def test_what_is_no_json_is_refused(server: Server, namespace: str, content: bytes) -> None:
    assert code(server.send(f"/v1/namespace/{namespace}/create", content)) == (400, 13)


@pytest.mark.parametrize("content", [b'{"mode": "\\ud800"}', b'{"properties": {"a": "\\u0000"}}'])
def test_odd_characters_in_a_body_are_no_server_error(
    server: Server, namespace: str, content: bytes
) -> None:
    answer = server.send(f"/v1/namespace/{namespace}$x/create", content)
    assert answer.status_code < 500


def test_a_content_type_does_not_matter(server: Server, namespace: str) -> None:
    for kind in ("application/json", "text/plain", "application/json; charset=utf-8"):
        path = f"/v1/namespace/{namespace}/describe"
        assert server.send(path, b"{}", {"content-type": kind}).status_code == 200


def test_a_trailing_slash_is_tolerated(table: Table) -> None:
    server = table.server
    assert server.post(f"/v1/table/{table.id}/describe/").status_code == 200
    assert server.get(f"/v1/namespace/{table.parts[0]}/table/list/").status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v2/table", "/v1/nothing", "/v1/table/x", "/v1/table/x/nothing", "/v1//x//y"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_an_unknown_route_answers_in_json(server: Server, path: str, method: str) -> None:
    answer = server.client.request(method, path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/json"
    assert {"error", "code", "instance"} <= answer.json().keys()


@pytest.mark.parametrize("path", ["index//stats", "index//drop", "index//prewarm"])
def test_an_empty_name_in_a_path_is_refused(table: Table, path: str) -> None:
    answer = table.server.post(f"/v1/table/{table.id}/{path}")
    assert answer.status_code in (400, 404), answer.text


def test_an_empty_column_of_a_blob_is_refused(table: Table) -> None:
    answer = table.server.get(f"/v1/table/{table.id}/blob///bytes")
    assert answer.status_code in (400, 404), answer.text


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/namespace/x/create", "POST"),
        ("POST", "/v1/namespace/x/list", "GET"),
        ("POST", "/v1/table", "GET"),
        ("DELETE", "/v1/table/x/drop", "POST"),
        ("PUT", "/v1/table/batch-commit", "POST"),
        ("PATCH", "/v1/table/x/version/create", "POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(
    server: Server, method: str, path: str, allowed: str
) -> None:
    answer = server.client.request(method, path)
    assert answer.status_code == 405
    assert allowed in answer.headers["allow"]
    assert {"error", "code", "instance"} <= answer.json().keys()


def test_a_request_id_comes_back(server: Server, namespace: str) -> None:
    headers = {"x-request-id": "my-id-1"}
    good = server.send(f"/v1/namespace/{namespace}/describe", headers=headers)
    bad = server.send("/v1/namespace/none/describe", headers=headers)
    assert good.headers["x-request-id"] == bad.headers["x-request-id"] == "my-id-1"
    assert bad.json()["instance"] == "my-id-1"


def test_a_request_id_is_made_when_there_is_none(server: Server) -> None:
    first, second = (server.post("/v1/namespace/none/describe") for _ in range(2))
    assert first.json()["instance"] == first.headers["x-request-id"]
    assert first.json()["instance"] != second.json()["instance"]


def test_an_endless_request_id_is_not_repeated(server: Server) -> None:
    answer = server.send("/v1/namespace/none/describe", headers={"x-request-id": "x" * 4000})
    assert len(answer.headers["x-request-id"]) < 200


def test_an_error_says_what_to_do(server: Server) -> None:
    found = server.post("/v1/namespace/none/describe").json()
    assert found.keys() == {"error", "code", "detail", "instance"}
    assert "none" in found["error"]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a small limit for bodies and a log in JSON."""
    environ = {"PENSTOCK__SERVER__MAX_JSON_BYTES": "2048", "PENSTOCK__LOG__FORMAT": "json"}
    with running(tmp_path_factory.mktemp("small"), environ=environ) as started:
        yield started


@pytest.mark.parametrize(("size", "fits"), [(2048, True), (2049, False), (3_000_000, False)])
def test_a_large_body_is_refused(small: Server, size: int, fits: bool) -> None:
    content = b'{"x": "' + b"x" * (size - 9) + b'"}'
    assert len(content) == size
    answer = small.send("/v1/namespace/$/describe", content)
    assert answer.status_code == 200 if fits else code(answer) == (413, 13)


def test_a_large_body_in_pieces_is_refused(small: Server) -> None:
    def pieces() -> Iterator[bytes]:
        yield from (b" " * 1000 for _ in range(5))

    answer = small.client.post("/v1/namespace/$/describe", content=pieces())
    assert code(answer) == (413, 13)


def logged(server: Server, request_id: str) -> dict[str, Any]:
    """The request's line in the log."""
    text = server.wait_for_output(f'"request_id":"{request_id}"')
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    found: dict[str, Any] = next(x for x in lines if x.get("request_id") == request_id)
    return found


def create(server: Server, **headers: str) -> httpx.Response:
    named = {"x-request-id": new_name()} | headers
    return server.send(f"/v1/namespace/{new_name()}/create", headers=named)


def test_a_request_is_one_line_of_the_log(small: Server) -> None:
    answer = create(small)
    line = logged(small, answer.headers["x-request-id"])
    assert (line["operation"], line["method"], line["status"]) == ("CreateNamespace", "POST", 200)
    assert line["milliseconds"] >= 0


@pytest.mark.parametrize(
    ("header", "value", "trace"),
    [
        ("x-lance-ctx-trace_id", "trace-1", "trace-1"),
        ("X-Lance-Ctx-Trace_Id", "trace-2", "trace-2"),
        ("traceparent", f"00-{'ab' * 16}-{'cd' * 8}-01", "ab" * 16),
    ],
)
def test_a_trace_reaches_the_log_and_the_transaction(
    small: Server, header: str, value: str, trace: str
) -> None:
    answer = create(small, **{header: value})
    assert logged(small, answer.headers["x-request-id"])["trace_id"] == trace
    id = answer.json()["transaction_id"]
    described = small.post(f"/v1/transaction/{id}/describe").json()
    assert described["properties"]["trace_id"] == trace


def test_a_trace_in_the_bodys_context_counts_too(small: Server) -> None:
    body = {"context": {"trace_id": "trace-3"}}
    id = small.post(f"/v1/namespace/{new_name()}/create", body).json()["transaction_id"]
    described = small.post(f"/v1/transaction/{id}/describe").json()
    assert described["properties"]["trace_id"] == "trace-3"


def test_a_failing_request_is_logged_with_its_trace(small: Server) -> None:
    headers = {"x-request-id": new_name(), "x-lance-ctx-trace_id": "trace-4"}
    small.send("/v1/namespace/none/describe", b"{", headers)
    line = logged(small, headers["x-request-id"])
    assert (line["status"], line["trace_id"]) == (400, "trace-4")
