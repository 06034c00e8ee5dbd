"""uvicorn's HTTP protocol, with two changes for speed, and limits for clients that mean harm.

- The head and the body of an answer are sent in one go. uvicorn writes them apart, which costs a
  second system call, a second packet and a second wake-up of the client for every small answer.
- The rest of a long request or answer can be lent to a thread, which uses the socket itself; with
  TLS it comes through the event loop all the same.
- A head that is too large is refused, and who sends one, or a body, too slowly is cut off.
"""

import asyncio
import os
import socket
from collections.abc import Collection
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.server.http import CONNECTION, ClientGone, LentBody

# Joining costs a copy, which only pays for small answers.
LARGE_BYTES = 65_536
TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
LOOK_SECONDS = 1.0
# How often the head of an answer is looked after that has not left yet.
FLUSH_SECONDS = 0.001


class JoiningProtocol(HttpToolsProtocol):
    """Sends what is written in one turn of the event loop together; lends its socket."""

    # What is still to come of a body that nobody wants any more.
    _unwanted_bytes = 0
    max_head_bytes = 65_536
    # Since when a head is awaited; 0 when none has begun.
    _head_since = 0.0
    _head_bytes = 0
    _arriving = 0
    _heard_at = 0.0
    _lent: socket.socket | None = None
    _forwarding: "asyncio.Task[None] | None" = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _JoiningTransport(transport)))
        self._head_since = self.loop.time()

    def on_message_begin(self) -> None:
        self._head_since = self._heard_at
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        self._head_since = 0.0
        # Only what came in many or large pieces can be too large.
        if self._head_bytes + self._arriving > self.max_head_bytes:
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            if size > self.max_head_bytes:
                self._head_bytes = size
                raise ValueError("the head is too large")
        self._head_bytes = 0
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        if self._head_bytes > self.max_head_bytes:
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)

    def cut_off(self, now: float, head_seconds: float, read_seconds: float) -> None:
        """Close the connection if its client has been too slow."""
        is_late = self._head_since > 0 and now - self._head_since > head_seconds
        cycle = self.cycle
        if not is_late and cycle is not None and cycle.more_body and not cycle.response_complete:
            if self.flow.read_paused:
                # It is not the client who is slow.
                self._heard_at = now
            is_late = now - self._heard_at > read_seconds
        if is_late:
            self.leave()

    def shutdown(self) -> None:
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.scheme == "https":
            self.leave()
        else:
            super().shutdown()

    def leave(self) -> None:
        """Close the connection, whatever is under way."""
        # With TLS, to close would be to wait for the client's good-bye, which may never come.
        if self.scheme == "https":
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
        self.cycle.more_body = False
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
        if data:
            self._heard_at = self.loop.time()
            self._arriving = len(data)
            was_in_head = self._head_since > 0
            super().data_received(data)
            # A head that began in these bytes may have begun anywhere in them.
            if was_in_head and self._head_since:
                self._head_bytes += len(data)
                if self._head_bytes > self.max_head_bytes:
                    self.send_400_response("")


def make_protocol(max_head_bytes: int) -> type[JoiningProtocol]:
    """The protocol, with its limit; uvicorn makes its instances itself."""
    return type("Protocol", (JoiningProtocol,), {"max_head_bytes": max_head_bytes})


async def watch(connections: Collection[Any], head_seconds: float, read_seconds: float) -> None:
    """Cut off clients that send nothing, or hardly anything, so that they hold no connections."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for connection in list(connections):
            connection.cut_off(loop.time(), head_seconds, read_seconds)


class _JoiningTransport:
    """A transport whose writes wait for the end of the turn; all else is the real one's."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        if len(data) >= LARGE_BYTES:
            self._flush()
            self._transport.write(data)
            return
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self._parts)) + self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._parts:
            parts, self._parts = self._parts, []
            self._transport.write(b"".join(parts))
