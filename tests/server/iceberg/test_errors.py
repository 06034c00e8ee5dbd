"""Errors: each with its status and type, in the protocol's shape, and never a 5xx of ours."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    SCHEMA,
    SPARK,
    Json,
    set_location,
    set_properties,
    sql,
    version,
)
from tests.harness.data.tables import code, declare
from tests.harness.processes import servers

BASE = "/iceberg/v1/penstock"


@pytest.mark.parametrize(
    "path",
    [
        *("/iceberg", "/iceberg/", "/iceberg/v1", "/iceberg/v2/config", "/iceberg/v1/nothing"),
        *(f"{BASE}/views", f"{BASE}/namespaces/a/nothing", f"{BASE}/namespaces/a/views/b/c"),
        *(f"{BASE}/transactions", f"{BASE}/penstock/namespaces", "/iceberg/v1/config/x"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_route_is_told_in_json(iceberg: Iceberg, method: str, path: str) -> None:
    iceberg.send(method, path).refused(404, "NoSuchEndpointException")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/iceberg/v1/config", "GET"),
        ("GET", "/iceberg/v1/oauth/tokens", "POST"),
        ("PUT", f"{BASE}/namespaces", "GET, POST"),
        ("PATCH", f"{BASE}/namespaces/a", "DELETE, GET, HEAD"),
        ("GET", f"{BASE}/namespaces/a/properties", "POST"),
        ("PUT", f"{BASE}/namespaces/a/views/b", "DELETE, GET, HEAD, POST"),
        ("DELETE", f"{BASE}/namespaces/a/views", "GET, POST"),
        ("GET", f"{BASE}/views/rename", "POST"),
        ("GET", f"{BASE}/namespaces/a/register-view", "POST"),
        ("OPTIONS", f"{BASE}/namespaces/a/tables/b", "DELETE, GET, HEAD, POST"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    iceberg: Iceberg, method: str, path: str, allowed: str
) -> None:
    answer = iceberg.send(method, path)
    answer.refused(405, "UnsupportedOperationException")
    assert answer.headers["allow"] == allowed


def test_a_wrong_head_is_told_the_right_methods_too(iceberg: Iceberg) -> None:
    answer = iceberg.send("HEAD", f"{BASE}/views/rename")
    assert (answer.status, answer.body, answer.headers["allow"]) == (405, b"", "POST")


@pytest.mark.parametrize(
    "raw",
    [
        *(b"", b"{", b"nonsense", b"[]", b"null", b"7", b'"text"', b'{"a": NaN}', b"\xff\xfe"),
        *(b"[" * 2_000, b'{"name": "\\ud800"}'),
    ],
)
@pytest.mark.parametrize(
    "path", ["namespaces", "{ns}/properties", "{ns}/views", "{ns}/views/view", "views/rename"]
)
def test_a_body_must_be_a_json_object(view: View, raw: bytes, path: str) -> None:
    if path == "{ns}/properties" and raw == b'{"name": "\\ud800"}':
        return  # An unknown field of a body is ignored, whatever it holds.
    target = f"{BASE}/{path.format(ns=view.namespace.path)}"
    view.client.send("POST", target, raw).refused(400, "BadRequestException")


def test_a_body_may_have_fields_that_nobody_knows(ns: Namespace) -> None:
    ns.create_view("view", something_new={"a": [1]})
    ns.view().client.post(f"{ns.path}/properties", {"updates": {}, "more": 1}).ok()


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\u2028", "\x7f", "\ufffe", "\U0010ffff"])
def test_a_text_may_hold_any_character(iceberg: Iceberg, text: str) -> None:
    ns = iceberg.new_namespace(**{"k": text, f"k{text}": "v"})
    assert ns.properties() == {"k": text, f"k{text}": "v"}
    query = sql(text=f"select '{text}'")
    loaded = ns.create_view(queries=[query], properties={f"p{text}": text}).load()
    assert loaded.properties == {f"p{text}": text}
    assert loaded.current["representations"] == [query]


@pytest.mark.parametrize("body", [{}, {"updates": None}, {"updates": {}}, {"updates": [None]}])
def test_a_replace_needs_updates(view: View, body: Json) -> None:
    view.client.post(view.path, body).refused(400, "BadRequestException")


@pytest.mark.parametrize("field", ["location", "properties"])
def test_what_is_optional_may_be_null(ns: Namespace, field: str) -> None:
    body: Any = {field: None}
    assert ns.create_view(**body).load().properties == {}


def test_a_namespace_has_a_greatest_length(ns: Namespace) -> None:
    levels = [f"{n}{'x' * 250}" for n in range(10)]
    deep = ns.client.namespace(*ns.levels, *levels)
    deep.create().refused(400, "BadRequestException")
    deep.load().refused(400, "BadRequestException")


def test_a_body_may_be_large_but_not_huge(iceberg: Iceberg, ns: Namespace) -> None:
    view = ns.create_view(queries=[sql(text="x" * 1_000_000)])
    assert len(view.load().current["representations"][0]["sql"]) == 1_000_000
    message = send_much(iceberg, f"{BASE}/{ns.path}/views", 17 * 1024 * 1024)
    head, _, body = message.partition(b"\r\n\r\n")
    assert head.split()[1] == b"413", head
    error = json.loads(body)["error"]
    assert (error["type"], error["code"]) == ("BadRequestException", 413)


def send_much(client: Iceberg, path: str, size: int) -> bytes:
    """POST a body of this size, as far as the server takes it; returns its whole answer."""
    address = urlsplit(client.server.url)
    with socket.create_connection((address.hostname, address.port or 80), timeout=30) as peer:
        peer.sendall(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode())
        try:
            for _ in range(size // 65536):
                peer.sendall(b"x" * 65536)
            peer.shutdown(socket.SHUT_WR)
        except ConnectionError:
            pass
        return b"".join(iter(lambda: peer.recv(65536), b""))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", None),
        ("name", 7),
        ("schema", None),
        ("schema", {"type": "struct"}),
        ("schema", {**SCHEMA, "fields": [{"id": 1}]}),
        ("view_version", None),
        ("view_version", {k: v for k, v in version().items() if k != "summary"}),
        ("view_version", {k: v for k, v in version().items() if k != "default-namespace"}),
        ("view_version", {**version(), "representations": None}),
        ("view_version", {**version(), "representations": ["select 1"]}),
        ("view_version", {**version(), "version-id": "1"}),
        ("properties", {"a": 1}),
        ("properties", ["a"]),
        ("location", 7),
    ],
)
def test_a_view_is_not_created_of_fields_that_are_wrong(
    ns: Namespace, field: str, value: Any
) -> None:
    ns.try_create_view(**{"name": "view", field: value}).refused(400, "BadRequestException")
    assert ns.view_names() == []


@pytest.mark.parametrize(
    "representations",
    [
        [],
        [SPARK, sql("Spark", "select 2")],
        [{"type": "graph", "dialect": "a", "sql": "b"}],
        [sql("")],
        [sql(text="")],
    ],
)
def test_a_version_that_means_nothing_is_an_illegal_argument(
    ns: Namespace, representations: list[Json]
) -> None:
    bad = {**version(), "representations": representations}
    answer = ns.try_create_view(view_version=bad)
    answer.refused(400, "IllegalArgumentException", "Invalid view version: ")


@pytest.mark.parametrize(
    "fields",
    [
        [{"id": 1, "name": "a", "required": True, "type": "nonsense"}],
        [{"id": 1, "name": n, "required": True, "type": "int"} for n in "ab"],
        [{"id": i, "name": "a", "required": True, "type": "int"} for i in (1, 2)],
    ],
)
def test_a_schema_that_cannot_be_is_an_illegal_argument(ns: Namespace, fields: list[Json]) -> None:
    answer = ns.try_create_view(schema={"type": "struct", "schema-id": 0, "fields": fields})
    answer.refused(400, "IllegalArgumentException")


@pytest.mark.parametrize(
    "location", ["/etc/penstock", "file:/etc/x", "file:///", "s3://elsewhere/x", "{lake}-not"]
)
def test_a_location_outside_the_lake_is_forbidden(ns: Namespace, location: str) -> None:
    where = location.format(lake=ns.client.server.lake)
    ns.try_create_view(location=where).refused(403, "ForbiddenException")
    properties = {"write.metadata.path": where}
    ns.try_create_view(properties=properties).refused(403, "ForbiddenException")
    assert not ns.view().exists()


def test_the_whole_lake_is_no_location(ns: Namespace) -> None:
    lake = ns.client.server.lake
    ns.try_create_view(location=str(lake)).refused(403, "ForbiddenException")
    ns.try_create_view(location=str(lake.parent)).refused(403, "ForbiddenException")


def test_a_location_of_a_namespace_outside_the_lake_is_forbidden(iceberg: Iceberg) -> None:
    ns = iceberg.new_namespace(location="/etc/penstock")
    ns.try_create_view().refused(403, "ForbiddenException")


@pytest.mark.parametrize("location", ["http://a/b", "{lake}/a/../../b", "hdfs://a/b", "\x07"])
def test_a_location_that_cannot_be_read_is_a_bad_request(ns: Namespace, location: str) -> None:
    where = location.format(lake=ns.client.server.lake)
    assert ns.try_create_view(location=where).status == 400


def test_a_link_in_the_lake_does_not_lead_out(ns: Namespace, tmp_path: Path) -> None:
    link = ns.client.server.lake / ns.name
    link.symlink_to(tmp_path)
    ns.try_create_view(location=f"{link}/view").refused(403, "ForbiddenException")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["a name too long", "below a file"])
def test_a_location_that_no_folder_can_have_is_a_bad_request(
    ns: Namespace, view: View, kind: str
) -> None:
    lake = ns.client.server.lake
    where = f"{lake}/{'x' * 300}" if kind == "a name too long" else f"{view.load().location}/x"
    for answer in (
        ns.try_create_view("other", location=where),
        ns.try_create_view("other", properties={"write.metadata.path": where}),
        view.try_replace(set_location(where)),
    ):
        answer.refused(400, "BadRequestException")


def test_a_view_does_not_lie_in_the_folder_of_a_table(ns: Namespace, view: View) -> None:
    where = f"{declare(ns.client.server, f'{ns.lance_id}$t').location}/view"
    inside = {"write.metadata.path": where}
    for answer in (
        ns.try_create_view("other", location=where),
        ns.try_create_view("other", properties=inside),
        view.try_replace(set_location(where)),
        view.try_replace({"action": "set-properties", "updates": inside}),
    ):
        answer.refused(400, "BadRequestException")
    assert not list(Path(where).rglob("*.json"))


def test_a_table_does_not_lie_around_the_files_of_a_view(ns: Namespace) -> None:
    folder = ns.client.server.lake / ns.name
    ns.create_view(location=f"{folder}/inner/view")
    for where in (folder, folder / "inner" / "view", folder / "inner" / "view" / "metadata"):
        body = {"location": str(where)}
        answer = ns.client.server.post(f"/v1/table/{ns.lance_id}$t/declare", body)
        assert code(answer) == (409, 5)


def test_a_view_needs_its_namespace(iceberg: Iceberg) -> None:
    ns = iceberg.namespace("nowhere", "inside")
    message = "Namespace does not exist: nowhere.inside"
    ns.try_create_view().refused(404, "NoSuchNamespaceException", message)
    iceberg.get(f"{ns.path}/tables").refused(404, "NoSuchNamespaceException", message)
    answer = iceberg.post(f"{ns.path}/tables", {"name": "t", "schema": SCHEMA})
    answer.refused(404, "NoSuchNamespaceException", message)


def test_nothing_follows_the_headers_of_an_answer_to_head(iceberg: Iceberg, view: View) -> None:
    for path in (view.path, f"{view.path}x", view.namespace.path, "namespaces/nowhere"):
        raw = exchange(iceberg, f"HEAD {BASE}/{path} HTTP/1.1")
        assert raw.endswith(b"\r\n\r\n"), raw


def test_an_answer_without_content_has_no_length(iceberg: Iceberg, view: View) -> None:
    for line in (f"HEAD {BASE}/{view.path} HTTP/1.1", f"DELETE {BASE}/{view.path} HTTP/1.1"):
        raw = exchange(iceberg, line).lower()
        assert raw.startswith(b"http/1.1 204"), raw
        assert b"content-length" not in raw
        assert b"transfer-encoding" not in raw
        assert b"content-type" not in raw


def exchange(client: Iceberg, line: str) -> bytes:
    """The whole answer to one request, to the last byte."""
    address = urlsplit(client.server.url)
    with socket.create_connection((address.hostname, address.port or 80), timeout=30) as peer:
        peer.sendall(f"{line}\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return b"".join(iter(lambda: peer.recv(65536), b""))


def test_each_answer_has_the_id_of_its_request(iceberg: Iceberg) -> None:
    answer = iceberg.ask("GET", "namespaces/nowhere", headers={"X-Request-Id": "mine"})
    assert answer.headers["x-request-id"] == "mine"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iceberg]:
    """A server that may use a place where nothing can be written."""
    environ = {"PENSTOCK__STORAGE__ALLOWED_ROOTS": '["/sys/kernel"]'}
    with servers.running(tmp_path_factory.mktemp("data"), environ=environ) as started:
        yield Iceberg(started)


def test_storage_that_fails_is_unavailable_for_now(broken: Iceberg) -> None:
    ns = broken.new_namespace()
    answer = ns.try_create_view(location="/sys/kernel/penstock")
    answer.refused(503, "ServiceUnavailableException")
    assert int(answer.headers["retry-after"]) > 0
    view = ns.create_view()
    answer = view.try_replace(set_location("/sys/kernel/penstock"), set_properties(a="b"))
    answer.refused(503, "ServiceUnavailableException")
    assert int(answer.headers["retry-after"]) > 0
    assert view.load().properties == {}
