"""uvicorn's HTTP protocol, with two changes for speed.

- The head and the body of an answer are sent in one go. uvicorn writes them apart, which costs a
  second system call, a second packet and a second wake-up of the client for every small answer.
- The rest of a long request or answer can be lent to a thread, which uses the socket itself.
"""

import asyncio
import os
import socket
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from penstock.server.http import CONNECTION, ClientGone, LentBody

# Joining costs a copy, which only pays for small answers.
LARGE_BYTES = 65_536
# How often the head of an answer is looked after that has not left yet.
FLUSH_SECONDS = 0.001


class JoiningProtocol(HttpToolsProtocol):
    """Sends what is written in one turn of the event loop together; lends its socket."""

    # What is still to come of a body that nobody wants any more.
    _unwanted_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _JoiningTransport(transport)))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {CONNECTION: self}  # type: ignore[dict-item]

    def lend_body(self, length: int, taken: int) -> LentBody | None:
        """What has not been taken of the current request's body; None when all has arrived."""
        if not self.cycle.more_body or self.transport.is_closing():
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
        return self._lend_socket()

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
            super().data_received(data)


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
