"""The ASGI application: find the operation, call it, answer; every error is answered here."""

import logging
import time
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.errors import PenstockError, Unsupported
from penstock.model.identifiers import ROOT, Identifier, parse_identifier
from penstock.server import probes, router
from penstock.server.http import (
    CONNECTION,
    ClientGone,
    Headers,
    Receive,
    Reply,
    Scope,
    Send,
    decode_segment,
    read_body,
    read_headers,
    read_query,
    send_reply,
    split_path,
)
from penstock.server.lance.call import Call
from penstock.server.lance.errors import INTERNAL, UNSUPPORTED, error_reply, to_reply
from penstock.server.logs import REQUESTS
from penstock.server.metrics import Metrics

log = logging.getLogger(__name__)
request_log = logging.getLogger(REQUESTS)


@dataclass(frozen=True, slots=True)
class Limits:
    max_json_bytes: int
    max_page: int


@dataclass(slots=True)
class _Exchange:
    """What is known of a request while it is answered, for logs and metrics."""

    request_id: str
    operation: str = "unknown"
    call: Call | None = None


class App:
    """One server's application."""

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        self._catalog = catalog
        self._limits = limits
        self._metrics = Metrics()
        self._encode = msgspec.json.Encoder().encode

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        headers = read_headers(scope)
        exchange = _Exchange(headers.request_id)
        self._metrics.in_flight += 1
        try:
            reply = await self._answer(scope, receive, headers, exchange)
            await send_reply(send, reply, exchange.request_id)
        except ClientGone:
            return
        finally:
            self._metrics.in_flight -= 1
        seconds = time.perf_counter() - started
        self._metrics.observe(exchange.operation, reply.status, seconds)
        if request_log.isEnabledFor(logging.INFO):
            _log_request(scope, exchange, reply.status, seconds)

    async def _answer(
        self, scope: Scope, receive: Receive, headers: Headers, exchange: _Exchange
    ) -> Reply:
        try:
            return await self._route(scope, receive, headers, exchange)
        except PenstockError as error:
            return to_reply(error, exchange.request_id)
        except ClientGone:
            raise
        except Exception:
            # Outside our error tree: a bug. The client gets its id, the log gets the rest.
            log.exception("request %s failed", exchange.request_id)
            return error_reply(
                500,
                INTERNAL,
                "internal error",
                "report it with the instance id; the server's log has the details",
                exchange.request_id,
            )

    async def _route(
        self, scope: Scope, receive: Receive, headers: Headers, exchange: _Exchange
    ) -> Reply:
        segments, method = split_path(scope), scope["method"]
        if len(segments) == 1 and segments[0] in probes.PATHS:
            exchange.operation = segments[0]
            if method not in ("GET", "HEAD"):
                return _wrong_method(method, "GET", exchange)
            return await probes.answer(segments[0], self._catalog, self._metrics)
        match = router.find(segments)
        if match is None:
            return error_reply(
                404,
                UNSUPPORTED,
                f"nothing is served at {scope['path']}",
                "check the path against the Lance Namespace REST specification",
                exchange.request_id,
            )
        operation = match.operation
        exchange.operation = operation.name
        if method != operation.method:
            return _wrong_method(method, operation.method, exchange)
        query = read_query(scope)
        delimiter = query.get("delimiter", ["$"])[-1]
        id = ROOT if match.id is None else _read_id(match.id, delimiter)
        if operation.handler is None:
            raise Unsupported(
                f"{operation.name} is not served by this release",
                detail="docs/operations.md lists what is",
            )
        call = Call(
            catalog=self._catalog,
            id=id,
            delimiter=delimiter,
            query=query,
            body=b""
            if operation.streams
            else await read_body(scope, receive, self._limits.max_json_bytes),
            headers=headers,
            max_page=self._limits.max_page,
            index_name=decode_segment(match.index_name),
            receive=receive,
            connection=scope["extensions"][CONNECTION],
        )
        exchange.call = call
        result = await operation.handler(call)
        if isinstance(result, Reply):
            return result
        return Reply(200) if result is None else Reply(200, self._encode(result))


@lru_cache(maxsize=4096)
def _read_id(segment: str, delimiter: str) -> Identifier:
    """The id in a path; clients name the same few over and over."""
    return parse_identifier(decode_segment(segment), delimiter)


def _wrong_method(method: str, allowed: str, exchange: _Exchange) -> Reply:
    return error_reply(
        405,
        UNSUPPORTED,
        f"{exchange.operation} does not answer to {method}",
        f"use {allowed}",
        exchange.request_id,
        ((b"allow", allowed.encode()),),
    )


def _log_request(scope: Scope, exchange: _Exchange, status: int, seconds: float) -> None:
    milliseconds = round(seconds * 1000, 2)
    path = scope["raw_path"].decode("latin-1")
    request_log.info(
        "%s %s %d in %s ms (%s)",
        scope["method"],
        path,
        status,
        milliseconds,
        exchange.request_id,
        extra={
            "request_id": exchange.request_id,
            "trace_id": exchange.call.trace_id if exchange.call else "",
            "operation": exchange.operation,
            "method": scope["method"],
            "path": path,
            "status": status,
            "milliseconds": milliseconds,
        },
    )
