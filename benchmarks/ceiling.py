"""The ceiling: uvicorn, set up as Penstock sets it up, with an application that does nothing."""

import socket
import sys
from typing import Any

import uvicorn
import uvloop


class Constant:
    """Answers everything with the same body."""

    def __init__(self, body: bytes) -> None:
        self._start = {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
            ],
        }
        self._body = {"type": "http.response.body", "body": body}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(self._start)
        await send(self._body)


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        Constant(sys.argv[1].encode()),
        http="httptools",
        loop="none",
        lifespan="off",
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        backlog=2048,
    )
    print(f"ceiling serves http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvloop.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
