"""Long request bodies as files that a worker thread reads, with bounded buffering.

A body of known length is read from the socket by the worker itself. A chunked one goes through the
event loop, which copies each byte four times while it holds the GIL.
"""

import asyncio
import select
import threading
from collections import deque
from collections.abc import Sequence

from penstock.lance.write.buffers import allocate
from penstock.server.transport.http import ClientGone, LentBody, Receive

# Enough to keep both sides busy; the most a transfer buffers, besides one chunk.
MAX_WAITING_BYTES = 8 * 1024 * 1024
# Reads of less than this share one system call.
SHARED_READ_BYTES = 256 * 1024

# Drop clients that send nothing for this long, so they can't hold a worker thread.
IDLE_SECONDS = 60
# How soon a thread that waits for its client notices that it may stop.
NOTICE_SECONDS = 0.5


class UploadBroken(OSError):
    """The client went away, or stopped sending, before its body was complete."""


class Upload:
    """A request's body as a file that a worker thread reads while it arrives."""

    def __init__(self, receive: Receive, first: Sequence[bytes] = ()) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Event()
        self._room.set()
        self._changed = threading.Condition()
        self._chunks: deque[memoryview] = deque()
        self._waiting = 0
        self._ended = False
        self._broken = False
        self.closed = False
        for chunk in first:
            self._put(chunk)

    async def feed(self) -> None:
        """Receive the body as fast as the reader takes it; runs beside the reader."""
        while not self.closed:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._finish(broken=True)
                raise ClientGone
            if chunk := message.get("body", b""):
                self._put(chunk)
                await self._room.wait()
            if not message.get("more_body"):
                self._finish()
                return

    def read(self, size: int = -1) -> bytes:
        """Exactly `size` bytes, fewer only at the end; called by the worker."""
        parts, wanted = [], size
        while wanted != 0:
            part = self._take(wanted)
            if not part:
                break
            parts.append(part)
            wanted -= len(part) if size >= 0 else 0
        return parts[0].tobytes() if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """Stop reading; discards what still arrives."""
        with self._changed:
            self.closed = True
            self._changed.notify()
        self._loop.call_soon_threadsafe(self._room.set)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def _put(self, chunk: bytes) -> None:
        with self._changed:
            self._chunks.append(memoryview(chunk))
            self._waiting += len(chunk)
            if self._waiting > MAX_WAITING_BYTES and not self.closed:
                self._room.clear()
            self._changed.notify()

    def _finish(self, *, broken: bool = False) -> None:
        with self._changed:
            self._ended, self._broken = True, broken
            self._changed.notify()

    def _take(self, most: int) -> memoryview:
        with self._changed:
            while not self._chunks:
                if self.closed:
                    raise UploadBroken("the request has ended")
                if self._broken:
                    raise UploadBroken("the client went away in the middle of its upload")
                if self._ended:
                    return memoryview(b"")
                if not self._changed.wait(IDLE_SECONDS):
                    raise UploadBroken(f"nothing arrived for {IDLE_SECONDS} seconds")
            chunk = self._chunks.popleft()
            if 0 <= most < len(chunk):
                self._chunks.appendleft(chunk[most:])
                chunk = chunk[:most]
            self._waiting -= len(chunk)
            if self._waiting <= MAX_WAITING_BYTES // 2 and not self._room.is_set():
                self._loop.call_soon_threadsafe(self._room.set)
            return chunk


class DirectUpload:
    """The rest of a request's body as a file that a worker thread reads from the socket."""

    def __init__(self, lent: LentBody, first: Sequence[bytes]) -> None:
        self._socket = lent.socket
        self._left = lent.left
        self._ready = memoryview(b"".join((*first, lent.arrived)))
        self._readable = select.poll()
        self._readable.register(self._socket, select.POLLIN)
        # Held while bytes are read, so that `close` knows how many are left.
        self._reading = threading.Lock()
        self.closed = False

    def read(self, size: int = -1) -> memoryview:
        """Exactly `size` bytes, fewer only at the end; called by the worker."""
        most = len(self._ready) + self._left
        content, count = allocate(most if size < 0 else min(size, most)), 0
        while count < len(content):
            if self._ready:
                part = self._ready[: len(content) - count]
                content[count : count + len(part)] = part
                self._ready = self._ready[len(part) :]
                count += len(part)
            elif len(content) - count >= SHARED_READ_BYTES:
                count += self._receive(content[count:])
            else:
                ahead = memoryview(bytearray(min(SHARED_READ_BYTES, self._left)))
                self._ready = ahead[: self._receive(ahead)]
        return content

    def close(self) -> int:
        """Stop reading; returns how many bytes of the body are still to come."""
        with self._reading:
            if not self.closed:
                self.closed = True
                self._socket.close()
            return self._left

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def _receive(self, view: memoryview) -> int:
        """Wait for bytes, and put as many as there are into the view."""
        waited = 0.0
        while True:
            with self._reading:
                if self.closed:
                    raise UploadBroken("the request has ended")
                try:
                    count = self._socket.recv_into(view)
                except BlockingIOError:
                    count = None
                if count:
                    self._left -= count
                    return count
            if count == 0:
                raise UploadBroken("the client went away in the middle of its upload")
            if waited >= IDLE_SECONDS:
                raise UploadBroken(f"nothing arrived for {IDLE_SECONDS} seconds")
            if not self._readable.poll(NOTICE_SECONDS * 1000):
                waited += NOTICE_SECONDS
