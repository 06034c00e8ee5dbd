"""Statements that were submitted: each is a request of `/v1/sql` in the server's own process.

So it comes by the same gate, to the same rights, bounds, limits and logs as a request over HTTP.
"""

import asyncio
import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.errors import TooManyRequests
from penstock.model.codes import BROKEN_OFF
from penstock.server.flight.arrow_messages import read_messages
from penstock.server.transport.http import CONNECTION, ClientGone, Message, Receive, Scope, Send

App = Callable[[Scope, Receive, Send], Awaitable[None]]
PATH = "/v1/sql"
# How long a statement, or its rows, are kept for a caller who says nothing.
KEEP_SECONDS = 60.0
MAX_STATEMENTS, MAX_OF_OWNER = 128, 16
READ_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Refusal(Exception):
    """The answer that a request got in place of rows."""

    status: int
    message: str


class Statement:
    """One request of `/v1/sql`, and its answer as it comes."""

    def __init__(self, owner: str) -> None:
        self.id, self.owner = secrets.token_hex(16), owner
        self.is_fetched = False
        # Whether its caller knows it, and so may ask again why there are no rows.
        self.is_known = False
        self.status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body = bytearray()
        # Set when there is an answer, or none any more.
        self.begun = asyncio.Event()
        self._left = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        # Of a large answer: one end for us, one that is lent to a worker.
        self._ends: tuple[socket.socket, socket.socket] | None = None
        self._writer: asyncio.StreamWriter | None = None
        # The rows, after the schema, which `open` reads.
        self.messages = read_messages(self._read())
        self._schema: bytes | None = None
        self._refusal: Refusal | None = None
        self._opening = asyncio.Lock()

    def start(self, app: App, scope: Scope, body: bytes) -> None:
        scope["extensions"] = {CONNECTION: self}
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await self._left.wait()
            return {"type": "http.disconnect"}

        async def run() -> None:
            try:
                # What it could not tell is told by the missing end.
                with contextlib.suppress(ClientGone):
                    await app(scope, receive, self._send)
            finally:
                self._finish()
                self.begun.set()

        self._task = asyncio.create_task(run())

    @property
    def has_failed(self) -> bool:
        """Whether its caller was told why there are no rows."""
        return self._refusal is not None

    def leave(self) -> None:
        """The caller is gone, or wants no rows any more: what runs is canceled."""
        self._left.set()
        self._body.clear()
        # The other end is closed by the worker's download, which hears that the caller left.
        if self._writer is not None:
            self._writer.close()
        elif self._ends is not None:
            self._ends[0].close()

    async def end(self, seconds: float) -> None:
        self.leave()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=seconds)
            self._task.cancel()

    async def open(self) -> bytes:
        """Wait for the answer; returns the schema of its rows, or raises Refusal."""
        async with self._opening:
            if self._refusal is not None:
                raise self._refusal
            if self._schema is None:
                try:
                    self._schema, _ = await anext(self.messages)
                except Refusal as refusal:
                    self._refusal = refusal
                    raise
        assert self._schema is not None
        return self._schema

    async def _read(self) -> AsyncIterator[bytes]:
        """The rows, in the chunks in which they come; raises Refusal when there are none."""
        await self.begun.wait()
        if self._ends is None:
            self._check(bytes(self._body))
            yield bytes(self._body)
            return
        self._check(b"")
        mark = self._headers[BROKEN_OFF.encode()]
        ends = await asyncio.open_connection(sock=self._ends[0], limit=READ_BYTES)
        reader, self._writer = ends
        try:
            while head := await reader.readline():
                chunk = (await reader.readexactly(int(head, 16) + 2))[:-2]
                if chunk.startswith(mark):
                    raise _to_refusal(chunk[len(mark) :])
                yield chunk
        except (asyncio.IncompleteReadError, OSError, ValueError) as error:
            raise Refusal(503, "the result broke off; ask again") from error
        finally:
            self._writer.close()

    def _check(self, body: bytes) -> None:
        if self._left.is_set():
            raise Refusal(499, "the statement was canceled, or nobody fetched its rows in time")
        if self.status == 0:
            raise Refusal(503, "the statement had no answer; ask again")
        if self.status >= 400:
            raise _read_refusal(self.status, body)

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._headers = message["status"], dict(message["headers"])
            return
        self._body += message.get("body", b"")
        if not message.get("more_body"):
            self.begun.set()

    # What a handler asks of its connection: the socket that a worker writes a large answer to.

    async def lend_answer(self) -> socket.socket:
        self._ends = socket.socketpair()
        for end in self._ends:
            end.setblocking(False)
        self.begun.set()
        return self._ends[1]

    async def take_back_answer(self) -> None:
        self._finish()

    async def break_off_answer(self) -> None:
        self._finish()

    def lend_body(self, length: int, taken: int) -> None:
        return None

    def take_back_body(self, left: int) -> None: ...

    def prove(self) -> None: ...

    def _finish(self) -> None:
        """Let the reader see the end; a worker may still hold the socket, so it stays open."""
        if self._ends is not None:
            with contextlib.suppress(OSError):
                self._ends[1].shutdown(socket.SHUT_WR)


@dataclass(slots=True)
class Statements:
    """All that were submitted and whose rows nobody has fetched yet, by id."""

    _known: dict[str, Statement] = field(default_factory=dict)
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def add(self, owner: str) -> Statement:
        """A new statement; one caller leaves room for others."""
        own = [each for each in self._known.values() if each.owner == owner]
        for each in own:
            if each.has_failed:
                self.drop(each)
        own = [each for each in own if not each.has_failed]
        if len(own) >= MAX_OF_OWNER or len(self._known) >= MAX_STATEMENTS:
            raise TooManyRequests(
                f"{len(own)} statements of yours were submitted and not fetched",
                detail="fetch their rows, or cancel them",
            )
        made = Statement(owner)
        self._known[made.id] = made
        self.touch(made)
        return made

    def find(self, id: str, owner: str) -> Statement | None:
        """A statement of this caller's, who is heard of again."""
        found = self._known.get(id)
        if found is None or found.owner != owner:
            return None
        self.touch(found)
        return found

    def touch(self, statement: Statement) -> None:
        """Keep a statement for some time from now on; while its rows are sent it stays anyway."""
        if statement.is_fetched:
            return
        if (timer := self._timers.pop(statement.id, None)) is not None:
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[statement.id] = loop.call_later(KEEP_SECONDS, self.drop, statement)

    def hold(self, statement: Statement) -> None:
        """Keep a statement while its rows are sent, which happens once."""
        statement.is_fetched = True
        if (timer := self._timers.pop(statement.id, None)) is not None:
            timer.cancel()

    def drop(self, statement: Statement) -> None:
        if (timer := self._timers.pop(statement.id, None)) is not None:
            timer.cancel()
        self._known.pop(statement.id, None)
        statement.leave()

    async def close(self, seconds: float) -> None:
        left = list(self._known.values())
        for each in left:
            self.drop(each)
        await asyncio.gather(*(each.end(seconds) for each in left))


class _Told(msgspec.Struct):
    error: str = ""
    detail: str = ""


class _BrokenOff(msgspec.Struct):
    status: int
    body: _Told


def _to_refusal(text: bytes) -> Refusal:
    told = msgspec.json.decode(text, type=_BrokenOff)
    return _refuse(told.status, told.body)


def _read_refusal(status: int, body: bytes) -> Refusal:
    return _refuse(status, msgspec.json.decode(body, type=_Told))


def _refuse(status: int, told: _Told) -> Refusal:
    return Refusal(status, "; ".join(filter(None, (told.error, told.detail))))


def make_scope(headers: list[tuple[bytes, bytes]], address: str) -> dict[str, Any]:
    """The request over HTTP that a statement is."""
    return {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"",
        "headers": headers,
        "client": (address, 0),
    }
