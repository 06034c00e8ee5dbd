"""The least that bulk over HTTP costs: pylance writes what arrives at a bare socket.

It checks nothing, has one client at a time and no catalog. Runs until told to stop, in a process of
its own.
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

import lance
import pyarrow as pa


class Receiver(BaseHTTPRequestHandler):
    """Writes the body of a POST as a dataset; answers a GET, so that it can be waited for."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        with pa.ipc.open_stream(self.rfile) as batches:
            lance.write_dataset(batches, sys.argv[1], enable_stable_row_ids=True)
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None: ...


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    print(f"receiver serves http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
