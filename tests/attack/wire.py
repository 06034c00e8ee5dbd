"""A connection that sends what it is told, byte by byte, and reads what comes back."""

import re
import socket
import ssl
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

WAIT_SECONDS = 60.0
# For an answer to what may be none of HTTP's requests, and for one after it.
RAW_SECONDS, NEXT_SECONDS = 4.0, 0.4
# An answer that goes on for longer than this is a stream, of which the beginning will do.
MAX_BODY = 4 * 1024 * 1024


@dataclass(frozen=True)
class Reply:
    """An answer; the status 0 stands for a connection that ended without one."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "backslashreplace")


NOTHING = Reply(0)


class Line:
    """One connection, made anew when it was closed."""

    def __init__(self, url: str) -> None:
        self._address = urlsplit(url)
        self._socket: socket.socket | None = None
        self._read = b""

    def ask(self, sent: bytes) -> Reply:
        """One answer to these bytes; a connection that was closed, or not taken, is made anew."""
        for pause in (0.0, 0.2, 1.0):
            time.sleep(pause)
            reply = self._ask(sent)
            if reply.status:
                break
        return reply

    def ask_raw(self, sent: bytes) -> list[Reply]:
        """All answers to these bytes on a connection of their own."""
        self.close()
        found: list[Reply] = []
        try:
            connection = self._open()
            connection.settimeout(RAW_SECONDS)
            connection.sendall(sent)
            while (reply := self._receive(b"GET")).status:
                found.append(reply)
                connection.settimeout(NEXT_SECONDS)
        except OSError:
            pass
        self.close()
        return found

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket, self._read = None, b""

    def _ask(self, sent: bytes) -> Reply:
        try:
            connection = self._open()
            connection.sendall(sent)
        except OSError:
            # It may have answered and closed before it had read everything.
            if self._socket is None:
                return NOTHING
        try:
            reply = self._receive(sent.partition(b" ")[0])
        except OSError:
            reply = NOTHING
        if reply.status == 0 or reply.headers.get("connection") == "close":
            self.close()
        return reply

    def _open(self) -> socket.socket:
        if self._socket is None:
            host, port = self._address.hostname or "", self._address.port or 0
            made: socket.socket = socket.create_connection((host, port), timeout=WAIT_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._address.scheme == "https":
                context = ssl.create_default_context()
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
                made = context.wrap_socket(made)
            self._socket = made
        return self._socket

    def _receive(self, method: bytes) -> Reply:
        while b"\r\n\r\n" not in self._read:
            if not self._more():
                return NOTHING
        head, _, self._read = self._read.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        found = re.match(r"HTTP/1\.[01] (\d{3})", first)
        if not found:
            return NOTHING
        pairs = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        status = int(found[1])
        if status == 100:
            return self._receive(method)
        if method == b"HEAD" or status in (204, 304):
            return Reply(status, headers)
        return Reply(status, headers, self._receive_body(headers))

    def _receive_body(self, headers: dict[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", ""):
            return self._receive_chunks()
        size = int(headers.get("content-length", "0"))
        while len(self._read) < size and self._more():
            pass
        body, self._read = self._read[:size], self._read[size:]
        return body

    def _receive_chunks(self) -> bytes:
        body = b""
        while len(body) < MAX_BODY:
            while b"\r\n" not in self._read:
                if not self._more():
                    return body
            line, _, self._read = self._read.partition(b"\r\n")
            size = int(line or b"0", 16)
            while len(self._read) < size + 2 and self._more():
                pass
            body, self._read = body + self._read[:size], self._read[size + 2 :]
            if size == 0:
                return body
        self.close()
        return body

    def _more(self) -> bool:
        assert self._socket is not None
        part = self._socket.recv(65536)
        self._read += part
        return bool(part)
