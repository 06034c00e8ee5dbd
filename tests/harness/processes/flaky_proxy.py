"""A proxy before a server that loses answers and turns requests away, as it is told."""

import contextlib
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import httpx

# What happens to a request: it goes through; its answer gets lost; it is turned away.
Fate = Literal["pass", "lose", "429", "503"]
KEPT = ("content-type", "idempotency-key", "x-api-key")


class FlakyProxy:
    """Requests meet these fates, in this order; later ones go through."""

    def __init__(self, retry_after: str) -> None:
        self.retry_after = retry_after
        self.fates: list[Fate] = []
        # Whether only requests with a key meet them.
        self.only_changes = False
        # Path, key and time of every request that came.
        self.seen: list[tuple[str, str | None, float]] = []
        self.url = ""

    def list_keys(self) -> list[str | None]:
        return [key for _, key, _ in self.seen]


@contextlib.contextmanager
def flaky(target: str, retry_after: str = "0") -> Iterator[FlakyProxy]:
    way = FlakyProxy(retry_after)
    client = httpx.Client(base_url=target, timeout=60, verify=False, trust_env=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            way.seen.append((self.path, self.headers.get("idempotency-key"), time.monotonic()))
            body = self._read_body()
            met = way.fates and (self.headers.get("idempotency-key") or not way.only_changes)
            fate = way.fates.pop(0) if met else "pass"
            if fate in ("429", "503"):
                self._answer(int(fate), b"{}", {"retry-after": way.retry_after})
                return
            headers = {n: v for n, v in self.headers.items() if n.lower() in KEPT}
            found = client.request(self.command, self.path, content=body, headers=headers)
            if fate == "lose":
                self.close_connection = True
                self.connection.close()
                return
            kind = {"content-type": found.headers.get("content-type", "application/json")}
            self._answer(found.status_code, found.content, kind)

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _read_body(self) -> bytes:
            if self.headers.get("transfer-encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)

        def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    way.url = f"http://127.0.0.1:{listener.server_address[1]}"
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    try:
        yield way
    finally:
        listener.shutdown()
        listener.server_close()
        client.close()
