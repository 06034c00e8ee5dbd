"""What the requests that change something are made of."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tests.harness.clients.idempotency_keys import Request
from tests.harness.data.arrow import people, send, to_stream
from tests.harness.processes.servers import Server

# Prepares what a request needs in a namespace, and returns the request.
Prepare = Callable[[Server, str], Request]


def lance(path: str, body: Any = None, **params: str) -> Request:
    return Request("POST", f"/v1/{path}", body, params)


def with_rows(server: Server, ns: str, name: str = "t") -> str:
    """A table with the versions 1 and 2, and three rows in the newest."""
    id = f"{ns}${name}"
    send(server, f"/v1/table/{id}/create", people(1, 2)).raise_for_status()
    send(server, f"/v1/table/{id}/insert", people(3)).raise_for_status()
    return f"table/{id}"


def ask(server: Server, path: str, body: Any = None) -> dict[str, Any]:
    answer = server.post(f"/v1/{path}", body).raise_for_status()
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


def with_namespace(server: Server, ns: str) -> str:
    ask(server, f"namespace/{ns}$x/create", {"properties": {"a": "1", "b": "2"}})
    return f"{ns}%1Fx"


def long_stream() -> bytes:
    """More than a server takes in whole."""
    rows = 100_000
    return to_stream(pa.table({"id": range(rows), "name": ["x" * 40] * rows}))
