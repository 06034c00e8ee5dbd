"""Results as files that a worker thread writes: sent whole, or while they grow."""

import asyncio
import select
import socket
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.lance.storage.data_threads import Deadline
from penstock.server.transport.uploads import IDLE_SECONDS, NOTICE_SECONDS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A result up to this size is sent whole; a larger one in parts of about this size.
PART_BYTES = 1024 * 1024
# More buffers than this are joined before they are sent.
MAX_PARTS = 256


class Download:
    """A file that is kept in memory while small; a large one goes straight to the socket."""

    def __init__(
        self, idle_seconds: float = IDLE_SECONDS, deadline: Deadline | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # Drop clients that stop reading, so they can't hold a worker thread.
        self._idle_seconds = idle_seconds
        self.is_stalled = False
        # For the work between two writes.
        self._deadline = deadline
        self._waited = 0.0
        self._parts: list[memoryview] = []
        self._held = self._written = 0
        self._changed = threading.Condition()
        self._socket: socket.socket | None = None
        self._writable = select.poll()
        self._abandoned = False
        # Set when there is more than is kept: then `send_to` must follow.
        self.is_large: asyncio.Future[None] = self._loop.create_future()
        self.closed = False

    def write(self, data: "ReadableBuffer") -> int:
        """Keep bytes, or send them; waits for the client. Called by the worker."""
        if self._abandoned:
            raise BrokenPipeError("nobody waits for the result any more")
        part = memoryview(data).cast("B")
        self._parts.append(part)
        self._held += len(part)
        self._written += len(part)
        if self._held >= PART_BYTES:
            if self._deadline is not None:
                self._deadline.pause()
            self._send_part()
        if self._deadline is not None:
            self._deadline.restart()
        return len(part)

    def end(self) -> None:
        """Called by the worker when everything is written."""
        if self._held and self._socket is not None:
            self._send_part()

    def break_off(self, last: bytes) -> None:
        """Send a last chunk instead of what is held; waits for the client."""
        self._parts, self._held = [memoryview(last)], len(last)
        self._send_part()

    def take(self) -> bytes:
        """Everything that was written, if it is little."""
        return b"".join(self._parts)

    def send_to(self, lent: socket.socket) -> None:
        """From now on the worker sends to this socket, in chunks."""
        with self._changed:
            self._socket = lent
            self._writable.register(lent, select.POLLOUT)
            self._changed.notify()

    def abandon(self) -> None:
        """Nobody reads any more: make the worker's next write fail."""
        with self._changed:
            self._abandoned = True
            self._changed.notify()
            if self._socket is not None:
                self._socket.close()

    def tell(self) -> int:
        return self._written

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None: ...

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def _send_part(self) -> None:
        """Send what is held as one chunk."""
        if self._socket is None:
            self._loop.call_soon_threadsafe(self.is_large.set_result, None)
        parts, head = self._parts, memoryview(b"%x\r\n" % self._held)
        self._parts, self._held = [], 0
        if len(parts) > MAX_PARTS:
            parts = [memoryview(b"".join(parts))]
        rest = [head, *parts, memoryview(b"\r\n")]
        while rest:
            rest = _without(rest, self._send(rest))

    def _send(self, parts: Sequence[memoryview]) -> int:
        """Send as much as the socket takes; waits when it takes nothing."""
        with self._changed:
            while self._socket is None and not self._abandoned:
                self._changed.wait()
            # Under the lock, so that nobody closes the socket meanwhile; it never blocks.
            if self._abandoned or self._socket is None:
                raise BrokenPipeError("the client went away")
            try:
                sent = self._socket.sendmsg(parts)
            except BlockingIOError:
                sent = 0
        if sent:
            self._waited = 0.0
            return sent
        if self._waited >= self._idle_seconds:
            self.is_stalled = True
            raise BrokenPipeError(f"the client took nothing for {self._idle_seconds} seconds")
        if not self._writable.poll(NOTICE_SECONDS * 1000):
            self._waited += NOTICE_SECONDS
        return 0


def _without(parts: list[memoryview], count: int) -> list[memoryview]:
    """What remains of parts after their first bytes."""
    for index, part in enumerate(parts):
        if count < len(part):
            return [part[count:], *parts[index + 1 :]]
        count -= len(part)
    return []
