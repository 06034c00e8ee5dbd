"""Bytes between the event loop and a worker thread, with a bound on what waits in between."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence

from penstock.server.http import ClientGone, Receive

# Enough to keep both sides busy; what a transfer holds in memory at most, besides one chunk.
MAX_WAITING_BYTES = 8 * 1024 * 1024


# A client that sends nothing for so long does not keep a worker any longer.
IDLE_SECONDS = 60


class UploadBroken(OSError):
    """The client went away, or fell silent, before its body was complete."""


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
        """Take the body in, as fast as the reader takes it out; run beside the reader."""
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
        """Stop reading; what still arrives is not kept."""
        self.closed = True
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


class Download:
    """A file that a worker thread writes and the event loop sends while it grows."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._changed = threading.Condition()
        self._waiting = 0
        self._abandoned = False
        self.closed = False

    def write(self, data: bytes) -> int:
        """Hand bytes over; waits while too many are on their way. Called by the worker."""
        chunk = bytes(data)
        with self._changed:
            while self._waiting > MAX_WAITING_BYTES and not self._abandoned:
                self._changed.wait()
            if self._abandoned:
                raise BrokenPipeError("the client went away")
            self._waiting += len(chunk)
        self._loop.call_soon_threadsafe(self._chunks.put_nowait, chunk)
        return len(chunk)

    def end(self) -> None:
        """Nothing more will be written."""
        self._loop.call_soon_threadsafe(self._chunks.put_nowait, None)

    def abandon(self) -> None:
        """Nobody reads any more: the worker's next write fails."""
        with self._changed:
            self._abandoned = True
            self._changed.notify()

    async def chunks(self) -> AsyncIterator[bytes]:
        while (chunk := await self._chunks.get()) is not None:
            yield chunk
            with self._changed:
                self._waiting -= len(chunk)
                self._changed.notify()

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None: ...

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
