"""uvicorn's HTTP protocol, with two changes for speed, and limits for clients that mean harm.

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

from penstock.server.transport.connections import Crowd, Visit
from penstock.server.transport.http import CONNECTION, ClientGone, LentBody
from penstock.server.transport.joining import LARGE_BYTES, JoiningTransport

TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
LOOK_SECONDS = 1.0
# How often the head of an answer is looked after that has not left yet.
FLUSH_SECONDS = 0.001
# How long a connection may be idle on which nobody has shown credentials.
UNPROVEN_IDLE_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Patience:
    """What a client may send, and how long it may take."""

    max_head_bytes: int = 65_536
    max_headers: int = 256
    head_seconds: float = 10.0
    read_seconds: float = 60.0
    idle_seconds: float = 75.0
    # Without authentication there is nothing to prove.
    trusts_everybody: bool = True


class TooLarge(Exception):
    """A head, or what is like one, is larger than a client may send."""


class JoiningProtocol(HttpToolsProtocol):
    """Sends what is written in one turn of the event loop together; lends its socket."""

    patience = Patience()
    # Of it, what every request asks for.
    max_headers = 256
    trusts_everybody = True
    crowd: Crowd
    visit: Visit
    # What is still to come of a body that nobody wants any more.
    _unwanted_bytes = 0
    # Since when a head is awaited; 0 when none has begun.
    _head_since = 0.0
    _head_bytes = 0
    # Whether one ended in what has just arrived.
    _has_ended_head = False
    # From the end of a head to the end of its body, and what has arrived of the latter since then
    # that is not in it: chunks can have names and values of their own, and headers may follow them.
    _is_in_body = False
    _body_since = 0.0
    _beside_bytes = 0
    _trailers = 0
    _is_too_large = False
    _answered_at = 0.0
    _arriving = 0
    _heard_at = 0.0
    # What the client has not taken of an answer, and since when it is so much.
    _unsent = (0, 0.0)
    _lent: socket.socket | None = None
    _forwarding: "asyncio.Task[None] | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", JoiningTransport(transport)))
        self.visit.guest = self
        self._head_since = self._heard_at = self.loop.time()
        if self.visit.is_over:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.crowd.exit(self.visit)
        super().connection_lost(exc)

    def prove(self) -> None:
        """Note that the client has shown the right credentials: it is trusted a little more."""
        if not self.visit.is_proven:
            self.crowd.prove(self.visit)
            self.timeout_keep_alive = self.patience.idle_seconds  # type: ignore[assignment]

    def is_waiting(self) -> bool:
        """Whether the client is to say something, and there is nothing to do for it."""
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
        # All that uvicorn does is here, because a call costs as much as the rest.
        if self._is_in_body:
            # What follows a body is not taken for what came before it.
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
        # Only what came in many or large pieces can be too large.
        if self._head_bytes + self._arriving > limit:
            # Each with what is around it: ": " and the end of the line.
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
            # It takes nothing: to close would be to wait until it does.
            self.transport.abort()
        elif self._is_late(now):
            self.leave()

    def _is_late(self, now: float) -> bool:
        patience = self.patience
        # None, whatever its type says, after a first head that was refused.
        cycle: Any = self.cycle
        if self.flow.read_paused:
            # It is not the client who is slow.
            self._heard_at = now
            self._head_since = now if self._head_since else 0.0
            return False
        if self._head_since:
            return now - self._head_since > patience.head_seconds
        if cycle is None:
            return False
        if cycle.response_complete:
            # What is left of a body whose answer was sent is not waited for much longer.
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
        # With TLS, to close would be to wait for the client's good-bye, which may never come; and
        # so it is with what a client does not take.
        if self.scheme == "https" or self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def lend_body(self, length: int, taken: int) -> LentBody | None:
        """What has not been taken of the current request's body; None when all has arrived."""
        if self.scheme == "https" or not self.cycle.more_body or self.transport.is_closing():
            return None
        self.flow.pause_reading()
        arrived, self.cycle.body = bytes(self.cycle.body), bytearray()
        return LentBody(self._lend_socket(), arrived, length - taken - len(arrived))

    def take_back_body(self, left: int) -> None:
        """Go on with the connection after the body, of which so many bytes were not read."""
        self.cycle.more_body = self._is_in_body = False
        if self.parser is not None:
            # The old one still waits for what it has not seen of the body.
            self.parser = httptools.HttpRequestParser(self)
            self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._unwanted_bytes = left
            self.flow.resume_reading()

    async def lend_answer(self) -> socket.socket:
        """The way out for chunks of an answer, once its head has left."""
        # No event says so of a transport; it is so after a turn or two of the loop.
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
        """Go on with the connection after the chunks that a thread has sent."""
        if self._lent is not None and self._forwarding is not None:
            self._lent.close()
            await self._forwarding
            self._lent = self._forwarding = None

    async def _forward(self, ours: socket.socket) -> None:
        with ours:
            while data := await self.loop.sock_recv(ours, LARGE_BYTES):
                await self.flow.drain()
                if self.transport.is_closing():
                    return
                self.transport.write(data)

    def _lend_socket(self) -> socket.socket:
        # A descriptor of its own stays valid, whatever the event loop does with the connection.
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
        # A head that began in these bytes may have begun anywhere in them.
        if was_in_head and self._head_since and not self._has_ended_head:
            self._head_bytes += len(data)
        beside = self._beside_bytes if self._is_in_body else self._head_bytes
        if beside > self.patience.max_head_bytes and not self.transport.is_closing():
            self._is_too_large = True
            self.send_400_response("")
        elif not (self._head_since or self._is_in_body) and _is_answered(self.cycle):
            # Empty lines, or the end of a body that nobody wanted: a request has to follow.
            self._head_since = self._heard_at


def _is_answered(cycle: Any) -> bool:
    return cycle is not None and bool(cycle.response_complete)


def make_protocol(patience: Patience) -> type[JoiningProtocol]:
    """The protocol, with its limits; uvicorn makes its instances itself."""
    often = {name: getattr(patience, name) for name in ("max_headers", "trusts_everybody")}
    return type("Protocol", (JoiningProtocol,), {"patience": patience, **often})


async def watch(connections: Collection[Any]) -> None:
    """Cut off clients that send nothing, or hardly anything, so that they hold no connections."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for connection in list(connections):
            connection.cut_off(loop.time())
