"""HTTP for a connection that is awaited: the SDK's own client over httpx's asynchronous one."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.to_thread
import httpx

from penstock.aio.switching import wait_for

# As many requests at a time as the caller makes; the server has bounds of its own.
LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=20)


class AwaitingTransport(httpx.BaseTransport):
    """Sends requests by an asynchronous client, whose awaits are the caller's."""

    def __init__(self, verify: bool, trust_env: bool) -> None:
        self._client = httpx.AsyncClient(verify=verify, trust_env=trust_env, limits=LIMITS)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=_Sent(request.stream),
            extensions=request.extensions,
        )
        answer = wait_for(self._client.send(asked, stream=True))
        return httpx.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Received(answer),
            extensions=answer.extensions,
        )

    def close(self) -> None:
        wait_for(self._client.aclose())


def pause(seconds: float) -> None:
    """Wait as `time.sleep` does, while others go on."""
    wait_for(anyio.sleep(seconds))


class _Sent(httpx.AsyncByteStream):
    """A body; one that is made part by part is made in a thread: it may read files."""

    def __init__(self, body: Any) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts = iter(self._body)
        if isinstance(self._body, httpx.ByteStream):
            for part in parts:
                yield part
            return
        while (part := await anyio.to_thread.run_sync(next, parts, None)) is not None:
            yield part


class _Received(httpx.SyncByteStream):
    """An answer as it arrived, which the SDK's own client decodes."""

    def __init__(self, answer: httpx.Response) -> None:
        self._answer = answer
        self._parts = answer.aiter_raw()

    def __iter__(self) -> Iterator[bytes]:
        while (part := wait_for(anext(self._parts, None))) is not None:
            yield part

    def close(self) -> None:
        wait_for(self._answer.aclose())
