"""One request while it is answered: its input, and what logs and metrics record of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.server.transport.http import (
    CONNECTION,
    Connection,
    Headers,
    Receive,
    Scope,
    read_headers,
    split_path,
)


class TracedCall(Protocol):
    """A call with its caller's trace."""

    @property
    def trace_id(self) -> str: ...


@dataclass(slots=True)
class Exchange:
    scope: Scope
    receive: Receive
    headers: Headers
    request_id: str
    segments: list[str]
    operation: str = "unknown"
    call: "TracedCall | None" = None
    # Empty until the caller is known, and where authentication is off.
    principal: str = ""
    token: str = ""
    # The object of a change; None when there is nothing to audit.
    subject: str | None = None
    # Runs after the answer has been sent.
    at_end: Callable[[], None] | None = None

    def prove(self) -> None:
        """Note on the connection that its client has shown valid credentials."""
        connection: Connection = self.scope["extensions"][CONNECTION]
        connection.prove()

    @property
    def address(self) -> str:
        """Where the request comes from."""
        client = self.scope.get("client")
        return client[0] if client else ""

    @property
    def method(self) -> str:
        method: str = self.scope["method"]
        return method


def begin(scope: Scope, receive: Receive) -> Exchange:
    headers = read_headers(scope)
    return Exchange(scope, receive, headers, headers.request_id, split_path(scope))
