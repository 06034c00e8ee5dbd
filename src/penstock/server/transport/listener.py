"""A listening socket that counts connections before reading from them.

uvloop's server knows a connection only after its TLS handshake, and accepts until no descriptor is
left.
"""

import asyncio
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Callable

from penstock.server.transport.connections import ConnectionTracker, TrackedConnection

log = logging.getLogger(__name__)

REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: 0\r\n\r\n"
)
# Bounds how long new connections keep the event loop from existing ones.
MAX_ACCEPTED = 64
EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE_SECONDS = 0.2
WARN_SECONDS = 10.0
SHED = 16
MAX_DESCRIPTORS = 65_536


def raise_descriptors() -> int:
    """Raise this process's descriptor limit as far as allowed; returns the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_DESCRIPTORS
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MAX_DESCRIPTORS)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)


class Listener:
    """Accepts connections, within the limits of the tracker."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[TrackedConnection], asyncio.Protocol],
        tracker: ConnectionTracker,
        tls: ssl.SSLContext | None,
        handshake_seconds: float,
    ) -> None:
        self._listener = listener
        self._make = make
        self._tracker = tracker
        self._tls = tls
        self._handshake_seconds = handshake_seconds
        self._loop = asyncio.get_running_loop()
        self._beginning: dict[asyncio.Task[None], _NewConnection] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._warned_at = -WARN_SECONDS

    def start(self, backlog: int) -> None:
        self._listener.setblocking(False)
        self._listener.listen(backlog)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> None:
        """Accept no more connections; ends those still in their TLS handshake."""
        if self._listener.fileno() < 0:
            return
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for beginning in self._beginning.values():
            beginning.leave()

    async def wait_closed(self) -> None:
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTED):
            try:
                connection, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED:
                    self._rest(error)
                    return
                # The client has already left.
                continue
            self._welcome(connection, str(address[0]))

    def _rest(self, error: OSError) -> None:
        """Out of descriptors, accepting would fail again at once: make room, and wait a little."""
        if self._loop.time() - self._warned_at > WARN_SECONDS:
            self._warned_at = self._loop.time()
            log.warning("no more connections for now: %s", error.strerror)
        for _ in range(SHED):
            self._tracker.shed()
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)

    def _go_on(self) -> None:
        self._loop.add_reader(self._listener, self._accept)

    def _welcome(self, connection: socket.socket, address: str) -> None:
        visit = self._tracker.enter(address)
        if visit is None:
            with connection:
                connection.setblocking(False)
                if self._tls is None:
                    connection.send(REFUSED)
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        task = self._loop.create_task(self._begin(connection, visit))
        self._beginning[task] = visit.user = _NewConnection(visit, task, self._tls is not None)

        def note_end(task: "asyncio.Task[None]") -> None:
            del self._beginning[task]
            error = None if task.cancelled() else task.exception()
            if error is not None and not isinstance(error, (OSError, ValueError)):
                log.error("a connection could not begin", exc_info=error)
            if task.cancelled() or error is not None:
                # No TLS, or none that both sides know; or the client has left, or was too slow.
                self._tracker.exit(visit)
                connection.close()

        task.add_done_callback(note_end)

    async def _begin(self, connection: socket.socket, visit: TrackedConnection) -> None:
        if self._tls is None:
            await self._loop.connect_accepted_socket(lambda: self._make(visit), connection)
            return
        await self._loop.connect_accepted_socket(
            lambda: self._make(visit),
            connection,
            ssl=self._tls,
            ssl_handshake_timeout=self._handshake_seconds,
            ssl_shutdown_timeout=self._handshake_seconds,
        )


class _NewConnection:
    """A connection before its client can ask anything."""

    def __init__(
        self, visit: TrackedConnection, task: "asyncio.Task[None]", is_handshake: bool
    ) -> None:
        self._visit = visit
        self._task = task
        self._is_handshake = is_handshake

    def is_waiting(self) -> bool:
        return True

    def leave(self) -> None:
        self._visit.is_over = True
        if self._is_handshake:
            # A handshake may take long. All others begin in a moment, and end once they have.
            self._task.cancel()
