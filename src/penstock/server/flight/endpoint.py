"""The endpoint of Arrow Flight SQL: a port of gRPC that submits, polls, fetches and cancels.

lancedb's client finds it at the port after the server's own, and calls PollFlightInfo, which
`pyarrow.flight` cannot serve.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from penstock.errors import InvalidRequest, NotAuthenticated, PenstockError, Unavailable
from penstock.extras import list_missing, show_install
from penstock.server.access.gate import Gate, find_credential
from penstock.server.access.jwts import HOW
from penstock.server.flight import messages
from penstock.server.flight.doors import aio, grpc
from penstock.server.flight.statements import (
    KEEP_SECONDS,
    App,
    Refusal,
    Statement,
    Statements,
    make_scope,
)
from penstock.server.lance.errors import to_reply
from penstock.server.transport.http import read_headers

# gRPC's own, of one call.
Context = Any

log = logging.getLogger(__name__)

# How long a poll waits for the end of a statement.
POLL_SECONDS = 1.0
MAX_CALLS = 128
MAX_REQUEST_BYTES = 1024 * 1024
MAX_MESSAGE = 4000
FORKS = "GRPC_ENABLE_FORK_SUPPORT"
GONE = "there is no such statement of yours, or its rows are not kept any more"
PASSED = ("x-api-key", "authorization", "x-request-id", "traceparent", "user-agent")
CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    406: "UNIMPLEMENTED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class FlightEndpoint:
    """Answers Flight's calls by requests to the server's own application."""

    def __init__(self, app: App, gate: Gate | None) -> None:
        self._app, self._gate = app, gate
        self._statements = Statements()
        self._server: Any = None

    async def start(self, host: str, port: int, tls: Mapping[str, str]) -> None:
        """Listen, with the server's own certificate if it has one."""
        _check_installed()
        with _without_fork_handlers():
            self._server = aio.server(
                options=(
                    ("grpc.so_reuseport", 0),
                    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
                    ("grpc.max_send_message_length", -1),
                ),
                maximum_concurrent_rpcs=MAX_CALLS,
            )
        methods = {
            "PollFlightInfo": grpc.unary_unary_rpc_method_handler(_answers(self._poll)),
            "GetFlightInfo": grpc.unary_unary_rpc_method_handler(_answers(self._get_info)),
            "DoGet": grpc.unary_stream_rpc_method_handler(_streams(self._get)),
            "DoAction": grpc.unary_stream_rpc_method_handler(_streams(self._act)),
        }
        name = messages.SERVICE.strip("/")
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(name, methods),)
        )
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if not tls:
                self._server.add_insecure_port(address)
            else:
                credentials = await asyncio.to_thread(_read_credentials, tls)
                self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise Unavailable(
                f"cannot listen on {address} for Flight",
                detail="choose another port with server.flight_port",
            ) from error
        await self._server.start()

    async def stop(self, seconds: float) -> None:
        if self._server is not None:
            await self._server.stop(seconds)
        await self._statements.close(seconds)

    async def _poll(self, request: bytes, context: Context) -> bytes:
        statement = await self._find_or_submit(request, context)
        schema = await self._open(statement) if await _wait(statement) else None
        statement.is_known = True
        return messages.make_poll(statement.id, schema, time.time() + KEEP_SECONDS)

    async def _get_info(self, request: bytes, context: Context) -> bytes:
        statement = await self._find_or_submit(request, context)
        return messages.make_info(statement.id, await self._open(statement))

    async def _get(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        """The rows of a statement, once."""
        statement = await self._find(messages.read_ticket(request), context)
        schema = await self._open(statement)
        if statement.is_fetched:
            raise InvalidRequest(GONE, detail="rows are fetched once; submit the query again")
        self._statements.hold(statement)
        try:
            yield messages.make_data(schema, b"")
            async for header, body in statement.messages:
                yield messages.make_data(header, body)
        finally:
            self._statements.drop(statement)

    async def _act(self, request: bytes, context: Context) -> AsyncIterator[bytes]:
        statement = await self._find(messages.read_cancel(request), context)
        self._statements.drop(statement)
        yield messages.make_cancel_result()

    async def _find_or_submit(self, request: bytes, context: Context) -> Statement:
        sql, id = messages.read_descriptor(request)
        return await (self._submit(sql, context) if sql else self._find(id, context))

    async def _submit(self, sql: str, context: Context) -> Statement:
        headers, address = _read_headers(context), _read_address(context)
        statement = self._statements.add(await self._identify(context, is_new=True))
        body: dict[str, Any] = {"sql": sql}
        for name, value in headers:
            if name == b"namespace-path":
                body["namespace"] = value.decode("latin-1").split("$")
        passed = [each for each in headers if each[0].decode("latin-1") in PASSED]
        statement.start(self._app, make_scope(passed, address), msgspec.json.encode(body))
        return statement

    async def _find(self, id: str, context: Context) -> Statement:
        found = self._statements.find(id, await self._identify(context))
        if found is None:
            raise InvalidRequest(GONE, detail="submit the query again")
        return found

    async def _open(self, statement: Statement) -> bytes:
        while not await _wait(statement):
            # Its caller is there, and waits.
            self._statements.touch(statement)
        try:
            return await statement.open()
        except Refusal:
            # Clients repeat a call that failed for a moment, and are to hear the same again.
            if not statement.is_known:
                self._statements.drop(statement)
            raise

    async def _identify(self, context: Context, *, is_new: bool = False) -> str:
        """Who calls: the principal of the credentials, or without authentication the address."""
        address = _read_address(context)
        if self._gate is None:
            return f"({address})"
        headers = read_headers({"headers": _read_headers(context)})
        headers.check()
        credential = find_credential(headers.values)
        if credential is None:
            self._gate.count_failure(address)
            raise NotAuthenticated("this server needs credentials", detail=HOW)
        identity = await self._gate.prove(credential, address)
        if not is_new:
            # A new one is counted as the request that it is.
            self._gate.count(identity)
        return identity.principal


async def _wait(statement: Statement) -> bool:
    """Wait a moment for the end of a statement; whether it has come."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(statement.begun.wait(), POLL_SECONDS)
    return statement.begun.is_set()


@contextlib.contextmanager
def _without_fork_handlers() -> Iterator[None]:
    """Load gRPC without what it does at a fork: the server's children start programs at once."""
    before = os.environ.get(FORKS)
    os.environ[FORKS] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[FORKS]
        else:
            os.environ[FORKS] = before


def _check_installed() -> None:
    if list_missing("flight"):
        raise InvalidRequest(
            "server.flight_port is set, and grpcio is not installed",
            detail=f"{show_install('flight')}, or set it to 0",
        )


def _read_credentials(tls: Mapping[str, str]) -> Any:
    key, chain = (Path(tls[name]).read_bytes() for name in ("ssl_keyfile", "ssl_certfile"))
    return grpc.ssl_server_credentials([(key, chain)])


def _answers(method: Callable[[bytes, Context], Awaitable[bytes]]) -> Callable[..., Any]:
    async def answer(request: bytes, context: Context) -> bytes:
        async with _told(context):
            return await method(request, context)
        raise AssertionError("aborted")

    return answer


def _streams(method: Callable[[bytes, Context], AsyncIterator[bytes]]) -> Callable[..., Any]:
    async def stream(request: bytes, context: Context) -> AsyncIterator[bytes]:
        async with _told(context):
            async for part in method(request, context):
                yield part

    return stream


@contextlib.asynccontextmanager
async def _told(context: Context) -> AsyncIterator[None]:
    """Errors inside become the call's status, in the words that HTTP would have."""
    try:
        yield
    except Refusal as refusal:
        await _abort(context, refusal.status, refusal.message)
    except PenstockError as error:
        told = "; ".join(filter(None, (error.message, error.detail)))
        await _abort(context, to_reply(error, "").status, told)
    except (aio.AbortError, asyncio.CancelledError):
        raise
    except Exception:
        log.exception("a call of Flight failed")
        await _abort(context, 500, "internal error; the server's log has the details")


async def _abort(context: Context, status: int, message: str) -> None:
    code = getattr(grpc.StatusCode, CODES.get(status, "INTERNAL"))
    # The status is sent in a header, which must stay small.
    await context.abort(code, message[:MAX_MESSAGE])


def _read_headers(context: Context) -> list[tuple[bytes, bytes]]:
    found = []
    for name, value in context.invocation_metadata() or ():
        text = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
        found.append((name.encode("latin-1", "replace"), text))
    return found


def _read_address(context: Context) -> str:
    """The caller's address; gRPC tells `ipv4:address:port`, or `ipv6:[address]:port`."""
    _, _, place = unquote(context.peer()).partition(":")
    return place.rpartition(":")[0].strip("[]")
