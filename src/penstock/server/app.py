"""The ASGI application: passes each request to its protocol and answers every error."""

import logging
import time
from typing import Protocol

from penstock.catalog.catalog import Catalog
from penstock.catalog.health import Readiness
from penstock.errors import PenstockError
from penstock.model.rights import READ
from penstock.server import probes
from penstock.server.access.browser_origins import AllowedPages
from penstock.server.access.gate import Gate
from penstock.server.access.idempotency import IdempotentRequests
from penstock.server.console import entry as console
from penstock.server.console.entry import ConsoleProtocol
from penstock.server.console.sessions import SessionRequests
from penstock.server.iceberg.entry import IcebergProtocol
from penstock.server.lance.entry import LanceProtocol
from penstock.server.logs import REQUESTS
from penstock.server.metrics import Metrics
from penstock.server.transport.exchange import Exchange, begin
from penstock.server.transport.http import (
    ClientGone,
    Limits,
    Receive,
    Reply,
    Scope,
    Send,
    check_encoding,
    send_reply,
)

# The audit log's outcome for a client that did not wait for its answer.
GONE = 499

log = logging.getLogger(__name__)
request_log = logging.getLogger(REQUESTS)


class ProtocolEntry(Protocol):
    """The entry to one protocol: its operations, and its form of errors."""

    async def answer(self, exchange: Exchange) -> Reply: ...

    def fail(self, error: PenstockError, exchange: Exchange) -> Reply: ...

    def fail_internally(self, exchange: Exchange) -> Reply: ...


class App:
    """One server's application."""

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits,
        warehouse: str,
        gate: Gate | None = None,
        pages: AllowedPages | None = None,
        sessions: SessionRequests | None = None,
    ) -> None:
        self._catalog = catalog
        self._gate = gate
        # With authentication, it does not matter which page a request comes from.
        self._pages = pages if gate is None else None
        self._metrics = Metrics(catalog.queue, catalog.upkeep_counts)
        self._readiness = Readiness(catalog)
        once = IdempotentRequests(catalog)
        self._lance = LanceProtocol(catalog, limits, once, gate)
        self._iceberg = IcebergProtocol(catalog, limits, once, warehouse, gate)
        # None where it is switched off.
        self._console = None if sessions is None else ConsoleProtocol(sessions)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        exchange = begin(scope, receive)
        self._metrics.in_flight += 1
        reply, is_gone = None, False
        try:
            reply = await self._answer(exchange)
            await send_reply(send, reply, exchange.request_id)
        except ClientGone:
            is_gone = True
        finally:
            self._metrics.in_flight -= 1
            if exchange.at_end is not None:
                exchange.at_end()
        # A client that left before the answer may still have changed something.
        status = GONE if reply is None else reply.status
        if self._gate is not None and exchange.subject is not None:
            self._gate.note(exchange, status)
        if reply is None or is_gone:
            return
        seconds = time.perf_counter() - started
        self._metrics.observe(exchange.operation, reply.status, seconds)
        if request_log.isEnabledFor(logging.INFO):
            _log_request(exchange, reply.status, seconds)

    async def _answer(self, exchange: Exchange) -> Reply:
        first = exchange.segments[0] if exchange.segments else ""
        entry: ProtocolEntry = self._iceberg if first == "iceberg" else self._lance
        if self._console is not None and first == console.NAME:
            entry = self._console
        try:
            exchange.headers.check()
            if self._pages is not None:
                self._pages.check(exchange.headers.values)
            if "content-encoding" in exchange.headers.values:
                check_encoding(exchange.headers.values["content-encoding"])
            if len(exchange.segments) == 1 and first in probes.PATHS:
                return await self._probe(first, exchange)
            if self._console is not None and console.is_browser(exchange):
                return console.AT_HOME
            return await entry.answer(exchange)
        except PenstockError as error:
            return entry.fail(error, exchange)
        except ClientGone:
            raise
        except Exception:
            # Outside our error tree: a bug. The client gets its id, the log gets the rest.
            log.exception("request %s failed", exchange.request_id)
            return entry.fail_internally(exchange)

    async def _probe(self, page: str, exchange: Exchange) -> Reply:
        exchange.operation = page
        if exchange.method not in ("GET", "HEAD"):
            return self._lance.refuse_method(exchange, "GET")
        if self._gate is not None and page == "metrics":
            await self._gate.check_catalog(exchange, READ)
        return await probes.answer(
            page, self._catalog, self._metrics, self._readiness, tells_why=self._gate is None
        )


def _log_request(exchange: Exchange, status: int, seconds: float) -> None:
    milliseconds = round(seconds * 1000, 2)
    path = exchange.scope["raw_path"].decode("latin-1")
    request_log.info(
        "%s %s %d in %s ms (%s)",
        exchange.method,
        path,
        status,
        milliseconds,
        exchange.request_id,
        extra={
            "request_id": exchange.request_id,
            "trace_id": exchange.call.trace_id if exchange.call else "",
            "principal": exchange.principal,
            "operation": exchange.operation,
            "method": exchange.method,
            "path": path,
            "status": status,
            "milliseconds": milliseconds,
        },
    )
