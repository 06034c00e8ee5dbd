"""Nothing that a client sends makes /iceberg fail: random requests to every route."""

import copy
import json
import uuid
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.server.iceberg.routes import ROUTES, Route
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.iceberg_views import read_metadata
from tests.harness.fuzzing.values import fuzzed, numbers, values_of, words_of
from tests.harness.processes.servers import Server

NAMESPACE = "fuzz"
FIELDS = (
    *("name", "namespace", "properties", "updates", "removals", "requirements", "identifier"),
    *("source", "destination", "schema", "view-version", "location", "metadata-location"),
    *("action", "type", "uuid", "view-version-id", "format-version", "fields", "id", "required"),
    *("version-id", "schema-id", "timestamp-ms", "summary", "representations", "dialect", "sql"),
    *(
        "default-namespace",
        "default-catalog",
        "overwrite",
        "doc",
        "element",
        "identifier-field-ids",
    ),
)
WORDS = (
    *("v", "w", NAMESPACE, "sql", "spark", "trino", "struct", "list", "map", "long", "string"),
    *("decimal(9,2)", "fixed[3]", "add-schema", "add-view-version", "set-current-view-version"),
    *("set-properties", "remove-properties", "set-location", "assign-uuid", "assert-view-uuid"),
    *("upgrade-format-version", "gc.enabled", "false", "none", "write.metadata.path"),
    *("version.history.num-entries", "write.metadata.compression-codec", "s3://b/x", "file:/etc"),
    *("file:///etc/passwd", "../..", ".", "..", "/", "$", "\x00", "\x1f", "é", "\ud7ff", "", "-1"),
)
SEGMENTS = (
    *(NAMESPACE, "v", "w", "x", "namespaces", "views", "tables", "rename", "properties", "config"),
    *(
        "%",
        "%FF",
        "%00",
        "%1F",
        "%2F",
        "a%1Fb",
        "%1Fa",
        ".",
        "..",
        "%2E%2E",
        "a+b",
        "é",
        "a" * 3000,
    ),
)

words = words_of(WORDS)
values = values_of(words, st.sampled_from(FIELDS) | words)
queries = st.dictionaries(
    st.sampled_from(
        ["parent", "pageToken", "pageSize", "warehouse", "snapshots", "purgeRequested"]
    ),
    words | numbers.map(str),
    max_size=3,
)
printable = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"))
headers = st.dictionaries(
    st.sampled_from(
        [
            *("idempotency-key", "authorization", "x-request-id", "accept-encoding", "accept"),
            *("content-type", "if-none-match", "x-iceberg-access-delegation", "traceparent"),
        ]
    ),
    printable.map(str.strip) | st.uuids().map(str),
    max_size=3,
)


@pytest.fixture(scope="module")
def stand(server: Server) -> Server:
    """A server with a view, so that requests reach beyond 'not found'."""
    server.post(f"/v1/namespace/{NAMESPACE}/create")
    return server


@pytest.fixture
def view(stand: Server) -> str:
    """A view that exists now, whatever the requests before did."""
    stand.post(f"/v1/namespace/{NAMESPACE}/create")
    views.create(NAMESPACE, "v").send(stand)
    return "v"


def request(server: Server, method: str, path: str, **options: Any) -> httpx.Response:
    """Send a request; whatever it is, the answer has the protocol's shape."""
    given = options.pop("headers", {})
    encoded = {name.encode(): value.encode("latin-1") for name, value in given.items()}
    answer = server.client.request(method, f"{server.url}{path}", headers=encoded, **options)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and method != "HEAD" and not path.startswith(TOKENS):
        error = answer.json()["error"]
        assert error.keys() >= {"message", "type", "code"}, answer.text
        assert error["code"] == answer.status_code
        assert isinstance(error["message"], str)
        assert error["type"].endswith("Exception")
    if method == "HEAD" or answer.status_code == 204:
        assert answer.content == b""
    return answer


# Errors of OAuth2 have a shape of their own.
TOKENS = f"{views.ROOT}/oauth"


def near_valid(name: str) -> Any:
    """A body that the route takes."""
    schema, version = views.schema(), views.version()
    bodies: dict[str, Any] = {
        "CreateNamespace": {"namespace": [NAMESPACE, "n"], "properties": {"a": "b"}},
        "UpdateProperties": {"updates": {"a": "b"}, "removals": ["c"]},
        "CreateView": {
            "name": "w",
            "location": None,
            "schema": schema,
            "view-version": version,
            "properties": {"a": "b", "version.history.num-entries": "3"},
        },
        "ReplaceView": {
            "identifier": {"namespace": [NAMESPACE], "name": "v"},
            "requirements": [],
            "updates": [
                {"action": "upgrade-format-version", "format-version": 1},
                {"action": "add-schema", "schema": schema, "last-column-id": 2},
                {"action": "set-properties", "updates": {"a": "b"}},
                {"action": "remove-properties", "removals": ["a"]},
                {"action": "add-view-version", "view-version": version | {"schema-id": -1}},
                {"action": "set-current-view-version", "view-version-id": -1},
            ],
        },
        "RenameView": {
            "source": {"namespace": [NAMESPACE], "name": "v"},
            "destination": {"namespace": [NAMESPACE], "name": "w"},
        },
        "RegisterView": {
            "name": "w",
            "metadata-location": "file:///x/metadata/00000-a.metadata.json",
        },
        "CreateTable": {"name": "w", "schema": schema},
        "RegisterTable": {"name": "w", "metadata-location": "file:///x.json"},
    }
    bodies["RenameTable"] = bodies["RenameView"]
    return bodies.get(name, {})


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container in a document, with each of its keys."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            found.append((value, key))
            found += places(value[key])
    return found


@st.composite
def mutated(draw: st.DrawFn, body: Any) -> Any:
    """The body with one to three of its places removed, replaced, doubled or added to."""
    changed = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        found = places(changed)
        if not found:
            return draw(values)
        parent, key = draw(st.sampled_from(found))
        match draw(st.sampled_from(["remove", "replace", "replace", "double", "add"])):
            case "remove":
                del parent[key]
            case "replace":
                parent[key] = draw(values)
            case "double" if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[key]))
            case _ if isinstance(parent, dict):
                parent[draw(st.sampled_from(FIELDS))] = draw(values)
            case _:
                parent.insert(0, draw(values))
    return changed


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
@fuzzed(12)
@given(st.data())
def test_no_request_to_a_route_makes_a_server_error(
    stand: Server, view: str, route: Route, data: st.DataObject
) -> None:
    namespace = data.draw(st.sampled_from([NAMESPACE, NAMESPACE, "fuzz%1Fn", "%1F"]) | segments)
    name = data.draw(st.sampled_from(["v", "v", "w"]) | segments)
    if {namespace, name} & {".", ".."}:
        return
    path = route.path.replace("{namespace}", namespace)
    path = path.replace("{view}", name).replace("{table}", name)
    content = (
        json.dumps(
            data.draw(st.dictionaries(st.sampled_from(FIELDS), values, max_size=6) | values)
        ).encode()
        if data.draw(st.integers(0, 9))
        else data.draw(st.binary())
    )
    options = {"content": content, "params": data.draw(queries), "headers": data.draw(headers)}
    request(stand, route.method, f"{views.ROOT}/{path}", **options)


segments = st.sampled_from(SEGMENTS) | st.text(min_size=1, max_size=8).map(
    lambda text: quote(text, safe="")
)

BODIES = [route for route in ROUTES if near_valid(route.name)]


@pytest.mark.parametrize("route", BODIES, ids=lambda route: route.name)
@fuzzed(40)
@given(st.data())
def test_no_body_that_is_nearly_right_makes_a_server_error(
    stand: Server, view: str, route: Route, data: st.DataObject
) -> None:
    path = route.path.replace("{namespace}", NAMESPACE)
    path = path.replace("{view}", "v").replace("{table}", "t")
    body = data.draw(mutated(near_valid(route.name)))
    given = {"idempotency-key": str(uuid.uuid4())} if data.draw(st.booleans()) else {}
    content = json.dumps(body).encode()
    answers = [
        request(stand, route.method, f"{views.ROOT}/{path}", content=content, headers=given)
        for _ in range(2 if given else 1)
    ]
    # Under a key, a request that is not a lack of rights gets the very same answer again.
    if given and route.is_change and answers[0].status_code != 403:
        assert answers[0].content == answers[1].content
    found = stand.get(views.path(NAMESPACE))
    assert found.status_code in (200, 404)
    if found.status_code == 200:
        assert read_metadata(found.json()["metadata-location"]) == found.json()["metadata"]


@fuzzed(50)
@given(
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"]),
    st.lists(segments, max_size=7),
    st.booleans(),
)
def test_no_path_makes_a_server_error(
    stand: Server, method: str, parts: list[str], is_versioned: bool
) -> None:
    # The client takes dots as ways up, and leaves the protocol with them.
    parts = [part for part in parts if part not in (".", "..")]
    path = "/".join(["/iceberg", *(["v1"] if is_versioned else []), *parts])
    if not path.startswith(TOKENS):
        request(stand, method, path)


@fuzzed(30)
@given(st.binary(max_size=60), st.sampled_from(["", "text/plain", "application/json"]))
def test_no_form_makes_a_server_error(stand: Server, content: bytes, kind: str) -> None:
    options = {
        "content": b"grant_type=" + content,
        "headers": {"content-type": kind} if kind else {},
    }
    answer = request(stand, "POST", f"{TOKENS}/tokens", **options)
    assert answer.status_code in (200, 400, 401)
    assert answer.json().keys() >= ({"error"} if answer.status_code >= 400 else {"access_token"})
