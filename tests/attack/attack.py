"""What an attack is: who sends what, and what must hold of the answer."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Whatever is asked, the server answers as somebody who has thought of it. 503 has to say when to
# come again; every other answer from 500 on is a hole.
REFUSED = frozenset(range(400, 500))
HANDLED = frozenset({*range(200, 500), 503})
UNKNOWN = frozenset({401})
INVALID = frozenset({400, 403, 404, 409, 413, 415, 422, 431})

ARROW = ("content-type", "application/vnd.apache.arrow.stream")


@dataclass(frozen=True)
class Request:
    """One HTTP request, of which every byte is the attacker's."""

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    def encode(self, credentials: tuple[tuple[str, str], ...] = ()) -> bytes:
        given = [*self.headers, *credentials]
        if not any(name.lower() == "host" for name, _ in given):
            given.insert(0, ("Host", "localhost"))
        if self.body or self.method == "POST":
            given.append(("Content-Length", str(len(self.body))))
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{n}: {v}" for n, v in given)]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + self.body


@dataclass(frozen=True)
class Attack:
    """A request and what must hold; its name tells it again."""

    family: str
    name: str
    # The caller, by the name that the world has for it; "" comes without credentials.
    who: str
    request: Request
    # The statuses that are no hole.
    may: frozenset[int] = HANDLED
    # The code of a Lance error that it must have.
    code: int | None = None
    # What must be answered in the very same words, but for these two names.
    like: Request | None = None
    names: tuple[str, str] = ("", "")
    # What the same caller sends first; nobody looks at the answers.
    before: tuple[Request, ...] = ()
    # Bytes as they are sent, in the place of a request.
    raw: bytes = b""
    # Texts that must not be in the answer.
    never: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The same for two attacks that are one."""
        parts = [self.raw or self.request.encode(), *(each.encode() for each in self.before)]
        return hashlib.sha256(self.who.encode() + b"\n" + b"\n\n".join(parts)).hexdigest()

    def __str__(self) -> str:
        sent = self.raw or self.request.encode()
        shown = sent[:300].decode("utf-8", "backslashreplace").replace("\r\n", " | ")
        return f"{self.family}: {self.name}, as {self.who or 'nobody known'}: {shown}"


def post(path: str, body: Any = None, **headers: str) -> Request:
    """A POST of JSON; underscores in the names of headers stand for hyphens."""
    content = b"" if body is None else to_json(body)
    return Request("POST", path, content, _to_headers(headers))


def send_arrow(path: str, content: bytes, **headers: str) -> Request:
    return Request("POST", path, content, (ARROW, *_to_headers(headers)))


def to_json(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _to_headers(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "-"), value) for name, value in headers.items())
