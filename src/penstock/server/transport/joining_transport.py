"""A transport that joins all writes of one turn of the event loop."""

import asyncio
from typing import Any

# Joining costs a copy, which only pays for small answers.
LARGE_BYTES = 65_536


class JoiningTransport:
    """A transport that delays writes to the end of the turn; everything else is the real one's."""

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
