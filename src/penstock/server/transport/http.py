"""Requests and replies on plain ASGI: read a body within its limit, send an answer."""

import random
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeVar, get_args, get_origin
from urllib.parse import parse_qs, unquote, unquote_plus

import msgspec

from penstock.errors import InvalidRequest, RequestTooLarge, UnknownEncoding

B = TypeVar("B")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
MAX_TRACE_ID = 128
# A field of the body that has a few words, and got another one.
WRONG_WORD = re.compile(r"Invalid enum value .* - at `\$\.(\w+)`")
CONTEXT_PREFIX = "x-lance-ctx-"
JSON = b"application/json"
# For answers with secrets: nobody may store them, including us.
NOT_STORED = ((b"cache-control", b"no-store"),)
# The extension of a request's scope that holds its connection.
CONNECTION = "penstock.connection"
NO_CONTENT = (204, 304)
# Headers that decide about access, where another reader may take another one of several.
SINGLE = frozenset(
    (
        *("host", "origin", "authorization", "x-api-key", "idempotency-key"),
        *("content-type", "content-encoding", "sec-fetch-site", "cookie", "x-penstock-csrf"),
    )
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Size limits of requests and answers."""

    max_json_bytes: int
    max_page: int


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


@dataclass(slots=True)
class Headers:
    """The headers of a request; those that set the client's context reach every operation."""

    values: dict[str, str]
    # A header that may come only once, and came more often.
    repeated: str = ""

    def check(self) -> None:
        """Refuse an ambiguous head."""
        if self.repeated:
            raise InvalidRequest(
                f"the header {self.repeated} came more than once", detail="send it once"
            )
        if self.values.get("transfer-encoding", "chunked").lower() != "chunked":
            raise InvalidRequest(
                "the body is encoded for its transfer by something else than chunks",
                detail="send Transfer-Encoding: chunked, or a Content-Length",
            )

    @property
    def request_id(self) -> str:
        """The caller's id if it is safe to repeat, else a new one."""
        given = self.values.get("x-request-id", "")
        if given and len(given) <= 128 and given.isascii() and given.isprintable():
            return given
        return f"{random.getrandbits(64):016x}"

    def context(self) -> dict[str, str]:
        """`x-lance-ctx-<key>` as `<key>`, and every header as `header.<name>`."""
        found = {f"header.{name}": value for name, value in self.values.items()}
        for name, value in self.values.items():
            if name.startswith(CONTEXT_PREFIX):
                found[name[len(CONTEXT_PREFIX) :]] = value
        return found


def find_trace_id(context: Mapping[str, str]) -> str:
    """The caller's trace, from its context or from a W3C traceparent header."""
    given = context.get("trace_id") or context.get("header.x-trace-id", "")
    if given:
        return given[:MAX_TRACE_ID]
    match = TRACEPARENT.fullmatch(context.get("header.traceparent", ""))
    return match[1] if match else ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that is ready to be sent."""

    status: int
    body: bytes = b""
    content_type: bytes = JSON
    headers: tuple[tuple[bytes, bytes], ...] = field(default=())
    # A body that is not known yet, instead of `body`: yielded piece by piece, or sent by a worker.
    chunks: AsyncIterator[bytes] | None = None
    sending: Callable[[], Awaitable[None]] | None = None


@dataclass(frozen=True, slots=True)
class LentBody:
    """The rest of a request's body: what has arrived of it, and how much the socket still holds."""

    socket: socket.socket
    arrived: bytes
    left: int


class Connection(Protocol):
    """The connection of a request, as far as a handler may use it."""

    def lend_body(self, length: int, taken: int) -> LentBody | None: ...

    def take_back_body(self, left: int) -> None: ...

    async def lend_answer(self) -> socket.socket: ...

    async def take_back_answer(self) -> None: ...

    async def break_off_answer(self) -> None: ...

    def leave(self) -> None: ...

    def prove(self) -> None: ...


def read_headers(scope: Scope) -> Headers:
    given = scope["headers"]
    values = {k.decode("latin-1"): v.decode("latin-1") for k, v in given}
    repeated = "" if len(values) == len(given) else _find_repeated(given)
    return Headers(values, repeated)


def _find_repeated(given: list[tuple[bytes, bytes]]) -> str:
    counts = Counter(name.decode("latin-1") for name, _ in given)
    return next((name for name, count in counts.items() if count > 1 and name in SINGLE), "")


def accepts(header: str, encoding: str) -> bool:
    """Whether an Accept-Encoding header allows an encoding by name."""
    for part in header.lower().split(","):
        name, _, weight = part.replace(" ", "").partition(";q=")
        if name == encoding:
            return weight.strip("0.") != "" or not weight
    return False


def check_encoding(header: str) -> None:
    """Refuse a compressed body, whose real size is not known beforehand."""
    if header.strip().lower() not in ("", "identity"):
        raise UnknownEncoding(
            f"the body has the content encoding {header[:40]!r}",
            detail="send it as it is; batches of an Arrow stream may be compressed in themselves",
        )


def read_query(scope: Scope) -> dict[str, list[str]]:
    """The query parameters; a flag without a value counts as given."""
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        return parse_qs(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=100
        )
    except (UnicodeDecodeError, ValueError) as error:
        raise InvalidRequest(
            f"the query string cannot be read: {error}", detail="percent-encode it as UTF-8"
        ) from error


def split_path(scope: Scope) -> list[str]:
    """The segments of the path as sent: still encoded, without a trailing slash."""
    raw: bytes = scope["raw_path"]
    path = raw.partition(b"?")[0].decode("latin-1")
    return path.strip("/").split("/") if len(path) > 1 else []


def ends_with_slash(scope: Scope) -> bool:
    """Whether the path as sent ends with a slash, which `split_path` leaves out."""
    raw: bytes = scope["raw_path"]
    return raw.partition(b"?")[0].endswith(b"/")


def decode_segment(segment: str) -> str:
    """A path segment's text; a bare plus is a space, as pylance sends it."""
    try:
        return unquote_plus(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"the path segment {unquote(segment, errors='replace')!r} is not UTF-8",
            detail="percent-encode ids as UTF-8",
        ) from error


def retry_headers(status: int) -> tuple[tuple[bytes, bytes], ...]:
    """Headers that tell a client when to try again."""
    if status in (429, 503):
        return ((b"retry-after", b"1"),)
    return ((b"www-authenticate", b'Bearer realm="penstock"'),) if status == 401 else ()


def replay(body: bytes, receive: Receive) -> Receive:
    """A body that was already read, as if received; then whatever comes after it."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return messages.pop() if messages else await receive()

    return again


async def read_body(
    receive: Receive, limit: int, how: str = "send less at once, or raise server.max_json_bytes"
) -> bytes:
    """The whole body; refused as soon as it is known to be too large."""
    chunks, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise RequestTooLarge(f"the body is larger than {limit} bytes", detail=how)
        chunks.append(chunk)
        if not message.get("more_body"):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decode_json(decoder: "msgspec.json.Decoder[B]", body: bytes, taker: str) -> B:
    """A JSON body; `taker` names its receiver in errors."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidRequest(
            f"the body is not what this {taker} takes: {error}",
            detail=_find_remedy(decoder, str(error)),
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"the body is not JSON: {error}", detail="send one JSON object"
        ) from error


def _find_remedy(decoder: "msgspec.json.Decoder[B]", told: str) -> str:
    """What to send instead, from what the decoder says."""
    kind: Any = decoder.type
    if (found := WRONG_WORD.search(told)) and hasattr(kind, "__struct_fields__"):
        for each in msgspec.structs.fields(kind):
            words = _list_words(each.type) if each.encode_name == found[1] else []
            if words:
                return f"{found[1]} is one of {', '.join(words)}"
    return "correct the field after '$.'" if "$." in told else ""


def _list_words(kind: Any) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(each) for each in get_args(kind)]
    return [word for part in get_args(kind) for word in _list_words(part)]


async def send_reply(send: Send, reply: Reply, request_id: str) -> None:
    headers = [(b"x-request-id", request_id.encode("latin-1")), *reply.headers]
    if reply.status not in NO_CONTENT:
        headers.append((b"content-type", reply.content_type))
        if reply.chunks is None and reply.sending is None:
            headers.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if reply.chunks is not None:
        async for chunk in reply.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    if reply.sending is not None:
        await reply.sending()
    await send({"type": "http.response.body", "body": reply.body})
