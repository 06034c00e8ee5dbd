"""uvicorn's HTTP protocol, with changes for speed and limits against hostile clients.

- The head and the body of an answer are sent in one go. uvicorn writes them apart, which costs a
  second system call, a second packet and a second wake-up of the client for every small answer.
- The rest of a long request or answer can be lent to a thread, which uses the socket itself; with
  TLS it comes through the event loop all the same.
- A head that is too large, or has too many headers, is refused, and so is the like of it around the
  chunks of a body; who sends too slowly, or takes nothing, is cut off.
"""

import asyncio
import os
import socket
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.server.transport.connections import ConnectionTracker, TrackedConnection
from penstock.server.transport.http import CONNECTION, ClientGone, LentBody
from penstock.server.transport.joining_transport import LARGE_BYTES, JoiningTransport

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
LOOK_SECONDS = 1.0
# How often to check whether the head of an answer has left.
FLUSH_SECONDS = 0.001
# How long a connection without credentials may be idle.
UNPROVEN_IDLE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How much a client may send, and how long it may take."""

    max_head_bytes: int = 65_536
    max_headers: int = 256
    head_seconds: float = 10.0
    read_seconds: float = 60.0
    idle_seconds: float = 75.0
    # Without authentication there are no credentials to show.
    trusts_everybody: bool = True


class TooLarge(Exception):
    """A head, or something like it, is larger than a client may send."""


class JoiningProtocol(HttpToolsProtocol):
    """Joins the writes of one turn of the event loop; lends its socket to threads."""

    patience = ClientLimits()
    # Cached: every request asks for it.
    max_headers = 256
    trusts_everybody = True
    tracker: ConnectionTracker
    visit: TrackedConnection
    # How much is still to come of a body that nobody wants any more.
    _unwanted_bytes = 0
    # Since when a head is awaited; 0 when none has begun.
    _head_since = 0.0
    _head_bytes = 0
    # Whether one ended in the data that just arrived.
    _has_ended_head = False
    # Between the end of a head and the end of its body: what has arrived that is not part of the
    # body. Chunks can have names and values of their own, and headers may follow them.
    _is_in_body = False
    _body_since = 0.0
    _beside_bytes = 0
    _trailers = 0
    _is_too_large = False
    _answered_at = 0.0
    _arriving = 0
    _heard_at = 0.0
    # How much of an answer the client has not taken, and since when.
    _unsent = (0, 0.0)
    _lent: socket.socket | None = None
    _forwarding: "asyncio.Task[None] | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport)))
        self.visit.user = self
        self._head_since = self._heard_at = self.loop.time()
        if self.visit.is_over:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.tracker.exit(self.visit)
        super().connection_lost(exc)

    def prove(self) -> None:
        """Note that the client has shown valid credentials: it gets more patience."""
        if not self.visit.is_proven:
            self.tracker.prove(self.visit)
            self.timeout_keep_alive = self.patience.idle_seconds  # type: ignore[assignment]

    def is_waiting(self) -> bool:
        """Whether the server waits for the client and has nothing to do for it."""
        cycle = self.cycle
        return (
            cycle is None
            or cycle.response_complete
            or (cycle.more_body and not self.visit.is_proven)
        )

    def on_message_begin(self) -> None:
        self._head_since = self._heard_at
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]

    def on_header(self, name: bytes, value: bytes) -> None:
        # Everything that uvicorn does is inlined here, because a call costs as much as the rest.
        if self._is_in_body:
            # What follows a body must not count as what came before it.
            self._trailers += 1
        else:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            self.headers.append((name, value))
        if len(self.headers) + self._trailers > self.max_headers:
            self._refuse_head("there are too many headers")

    def on_headers_complete(self) -> None:
        self._head_since = 0.0
        limit = self.patience.max_head_bytes
        # Only data in many or large pieces can be too large.
        if self._head_bytes + self._arriving > limit:
            # Each with its framing: ": " and the end of the line.
            sizes = (len(name) + len(value) + 4 for name, value in self.headers)
            if len(self.url) + sum(sizes) > limit:
                self._refuse_head("the head is too large")
        self._head_bytes = self._beside_bytes = self._trailers = 0
        self._is_in_body = self._has_ended_head = True
        self._body_since = self._heard_at
        if self.trusts_everybody and not self.visit.is_proven:
            self.prove()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._beside_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered_at = self.loop.time()
        super().on_response_complete()

    def _refuse_head(self, why: str) -> NoReturn:
        self._is_too_large = True
        raise TooLarge(why)

    def send_400_response(self, msg: str) -> None:
        if self._is_too_large:
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def cut_off(self, now: float) -> None:
        """Close the connection if its client has been too slow."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent[0] or not unsent:
            self._unsent = unsent, now
        if now - self._unsent[1] > self.patience.read_seconds:
            # The client reads nothing: closing would wait until it does.
            self.transport.abort()
        elif self._is_late(now):
            self.leave()

    def _is_late(self, now: float) -> bool:
        patience = self.patience
        # None, whatever its type says, after a first head that was refused.
        cycle: Any = self.cycle
        if self.flow.read_paused:
            # The server is slow, not the client.
            self._heard_at = now
            self._head_since = now if self._head_since else 0.0
            return False
        if self._head_since:
            return now - self._head_since > patience.head_seconds
        if cycle is None:
            return False
        if cycle.response_complete:
            # Do not wait much longer for the rest of a body whose answer was sent.
            left = self._is_in_body or self._unwanted_bytes
            return bool(left) and now - self._answered_at > patience.read_seconds
        if not cycle.more_body:
            return False
        since = self._heard_at if self.visit.is_proven else self._body_since
        return now - since > patience.read_seconds

    def shutdown(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.scheme == "https":
            self.leave()
        else:
            super().shutdown()

    def leave(self) -> None:
        """Close the connection, whatever is under way."""
        # With TLS, closing would wait for the client's good-bye, which may never come; and likewise
        # for data that a client does not read.
        if self.scheme == "https" or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def lend_body(self, length: int, taken: int) -> LentBody | None:
        """Lend the unread rest of the current request's body; None when all has arrived."""
        if self.scheme == "https" or not self.cycle.more_body or self.transport.is_closing():
            return None
        self.flow.pause_reading()
        arrived, self.cycle.body = bytes(self.cycle.body), bytearray()
        return LentBody(self._lend_socket(), arrived, length - taken - len(arrived))

    def take_back_body(self, left: int) -> None:
        """Continue the connection after the body, of which so many bytes were not read."""
        self.cycle.more_body = self._is_in_body = False
        if self.parser is not None:
            # The old parser still waits for the part of the body that it has not seen.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._unwanted_bytes = left
            self.flow.resume_reading()

    async def lend_answer(self) -> socket.socket:
        """Lend the socket for chunks of an answer, once its head has left."""
        # No event reports this for a transport; it is true after a turn or two of the loop.
        while self.transport.get_write_buffer_size() and not self.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(FLUSH_SECONDS)
        if self.transport.is_closing():
            raise ClientGone
        if self.scheme != "https":
            return self._lend_socket()
        ours, self._lent = socket.socketpair()
        ours.setblocking(False)
        self._lent.setblocking(False)
        self._forwarding = asyncio.create_task(self._forward(ours))
        return self._lent

    async def take_back_answer(self) -> None:
        """Continue the connection after the chunks that a thread has sent."""
        if self._lent is not None and self._forwarding is not None:
            self._lent.close()
            await self._forwarding
            self._lent = self._forwarding = None

    async def break_off_answer(self) -> None:
        """Close the connection after the chunks that were sent, so that the answer has no end."""
        await self.take_back_answer()
        while self.transport.get_write_buffer_size() and not self.transport.is_closing():  # noqa: ASYNC110
            await asyncio.sleep(FLUSH_SECONDS)
        self.leave()

    async def _forward(self, ours: socket.socket) -> None:
        with ours:
            while data := await self.loop.sock_recv(ours, LARGE_BYTES):
                await self.flow.drain()
                if self.transport.is_closing():
                    return
                self.transport.write(data)

    def _lend_socket(self) -> socket.socket:
        # A duplicate descriptor stays valid, whatever the event loop does with the connection.
        return socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno()))

    def data_received(self, data: bytes) -> None:
        if self._unwanted_bytes:
            self._unset_keepalive_if_required()
            skipped = min(len(data), self._unwanted_bytes)
            self._unwanted_bytes -= skipped
            data = data[skipped:]
        if not data or self.parser is None:
            return
        self._heard_at = self.loop.time()
        self._arriving = len(data)
        self._beside_bytes += len(data)
        was_in_head, self._has_ended_head = self._head_since > 0, False
        super().data_received(data)
        # A head that began in this data may have begun anywhere in it.
        if was_in_head and self._head_since and not self._has_ended_head:
            self._head_bytes += len(data)
        beside = self._beside_bytes if self._is_in_body else self._head_bytes
        if beside > self.patience.max_head_bytes and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("")
        elif not (self._head_since or self._is_in_body) and _is_answered(self.cycle):
            # Empty lines, or the end of an unwanted body: a request has to follow.
            self._head_since = self._heard_at


def _is_answered(cycle: Any) -> bool:
    return cycle is not None and bool(cycle.response_complete)


def make_protocol(patience: ClientLimits) -> type[JoiningProtocol]:
    """The protocol with its limits; uvicorn creates its instances itself."""
    often = {name: getattr(patience, name) for name in ("max_headers", "trusts_everybody")}
    return type("Protocol", (JoiningProtocol,), {"patience": patience, **often})


async def watch(connections: Collection[Any]) -> None:
    """Drop clients that send nothing, or hardly anything, so that they hold no connections."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for connection in list(connections):
            connection.cut_off(loop.time())
