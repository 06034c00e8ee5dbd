"""A thin Iceberg REST client, which sends what Java's RESTCatalog sends, and views to work on."""

import http.client
import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, urlencode, urlsplit

from tests.harness.clients.iceberg_views import Json, LoadedView, create_body
from tests.harness.processes.servers import Server

PREFIX = "penstock"
# Well below what a server waits before it closes a connection.
IDLE_SECONDS = 1
NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Answer:
    """What came back, to the byte."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def ok(self) -> Any:
        """The JSON of an answer that must be 200."""
        assert self.status == 200, (self.status, self.body)
        return self.json()

    def done(self) -> None:
        """An answer that must be 204, and nothing else."""
        assert (self.status, self.body) == (204, b""), (self.status, self.body)

    def refused(self, status: int, type: str, message: str = "") -> str:
        """The message of an answer that must be this error, in the protocol's shape."""
        assert self.status == status, (self.status, self.body)
        assert self.headers["content-type"] == "application/json"
        error = self.json()["error"]
        assert (error["type"], error["code"]) == (type, status), error
        assert error["message"].startswith(message), error
        found: str = error["message"]
        return found


class Iceberg:
    """One connection to the Iceberg routes of a server."""

    def __init__(self, server: Server, prefix: str = PREFIX) -> None:
        self.server = server
        self.prefix = prefix
        self._connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=30)
        self._used = time.monotonic()

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send exactly this path and these bytes."""
        if time.monotonic() - self._used > IDLE_SECONDS:
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request(method, path, body, dict(headers or {}))
        answer = self._connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        """Call a route below the prefix, with JSON."""
        target = f"/iceberg/v1/{self.prefix}/{path}"
        if query:
            target += f"?{urlencode(query, quote_via=quote)}"
        content = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        return self.send(method, target, content, {**kind, **(headers or {})})

    def get(self, path: str, **query: Any) -> Answer:
        return self.ask("GET", path, **query)

    def head(self, path: str) -> Answer:
        return self.ask("HEAD", path)

    def post(self, path: str, body: Any) -> Answer:
        return self.ask("POST", path, body)

    def delete(self, path: str) -> Answer:
        return self.ask("DELETE", path)

    def namespace(self, *levels: str) -> "Namespace":
        return Namespace(self, levels)

    def new_namespace(self, *levels: str, **properties: str) -> "Namespace":
        """Create a namespace, by default with a new name; it must work."""
        made = self.namespace(*(levels or (f"ns{uuid.uuid4().hex[:10]}",)))
        made.create(properties or None).ok()
        return made

    def rename(self, source: "View", destination: "View") -> Answer:
        names = {"source": source.identifier, "destination": destination.identifier}
        return self.post("views/rename", names)


@dataclass(frozen=True)
class Namespace:
    """A namespace, whether it exists or not."""

    client: Iceberg
    levels: tuple[str, ...]

    @property
    def path(self) -> str:
        # Java's URLEncoder writes a space as a plus.
        return "namespaces/" + "%1F".join(quote_plus(level, safe="*") for level in self.levels)

    @property
    def name(self) -> str:
        return ".".join(self.levels)

    @property
    def lance_id(self) -> str:
        return "$".join(self.levels)

    def create(self, properties: Mapping[str, str] | None = None) -> Answer:
        # Java leaves empty properties out.
        more = {"properties": dict(properties)} if properties else {}
        return self.client.post("namespaces", {"namespace": self.levels, **more})

    def load(self) -> Answer:
        return self.client.get(self.path)

    def properties(self) -> dict[str, str]:
        """Its own properties; the lake's root is told for a location where it has none."""
        found: dict[str, str] = self.load().ok()["properties"]
        if found["location"] == f"file://{self.client.server.lake.resolve()}":
            del found["location"]
        return found

    def exists(self) -> bool:
        return _exists(self.client.head(self.path))

    def drop(self) -> Answer:
        return self.client.delete(self.path)

    def child(self, name: str) -> "Namespace":
        return Namespace(self.client, (*self.levels, name))

    def list_views(self, **query: Any) -> Answer:
        return self.client.get(f"{self.path}/views", **query)

    def view_names(self) -> list[str]:
        """The names of its views, asked for as Java does."""
        found = self.list_views(pageToken="").ok()
        assert all(each["namespace"] == list(self.levels) for each in found["identifiers"])
        return [each["name"] for each in found["identifiers"]]

    def view(self, name: str = "view") -> "View":
        """A view that may not exist."""
        return View(self, name)

    def try_create_view(self, name: str = "view", **body: Any) -> Answer:
        return self.client.post(f"{self.path}/views", create_body(name, **body))

    def create_view(self, name: str = "view", **body: Any) -> "View":
        made = self.try_create_view(name, **body).ok()
        return View(self, name, made["metadata"]["view-uuid"])

    def try_register(self, name: str, metadata_location: str) -> Answer:
        body = {"name": name, "metadata-location": metadata_location}
        return self.client.post(f"{self.path}/register-view", body)


@dataclass(frozen=True)
class View:
    """A view, whether it exists or not; `uuid` is what its client knows of it."""

    namespace: Namespace
    name: str
    uuid: str = field(default=NOBODY, compare=False)

    @property
    def client(self) -> Iceberg:
        return self.namespace.client

    @property
    def path(self) -> str:
        return f"{self.namespace.path}/views/{quote_plus(self.name, safe='*')}"

    @property
    def identifier(self) -> Json:
        return {"namespace": self.namespace.levels, "name": self.name}

    @property
    def full_name(self) -> str:
        return f"{self.namespace.name}.{self.name}"

    def try_load(self) -> Answer:
        return self.client.get(self.path)

    def load(self) -> LoadedView:
        return to_loaded(self.try_load())

    def exists(self) -> bool:
        return _exists(self.client.head(self.path))

    def drop(self) -> Answer:
        return self.client.delete(self.path)

    def try_replace(self, *updates: Json, **body: Any) -> Answer:
        """Commit updates, on condition that the view is still the one the client knows."""
        known = {"type": "assert-view-uuid", "uuid": self.uuid}
        whole = {"requirements": [known], "updates": updates, **body}
        return self.client.post(self.path, whole)

    def replace(self, *updates: Json, **body: Any) -> LoadedView:
        return to_loaded(self.try_replace(*updates, **body))


def to_loaded(answer: Answer) -> LoadedView:
    found = answer.ok()
    return LoadedView(found["metadata-location"], found["metadata"])


def _exists(answer: Answer) -> bool:
    assert answer.status in (204, 404), answer
    return answer.status == 204
