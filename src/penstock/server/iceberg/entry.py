"""The entry to the Iceberg protocol: find the route, call it, answer."""

from functools import partial

from penstock.catalog.catalog import Catalog
from penstock.errors import NamespaceNotFound, PenstockError, TableNotFound, ViewNotFound
from penstock.model.identifiers import ROOT, SEPARATOR, Identifier, check_identifier
from penstock.model.rights import WRITE, Standing
from penstock.server.access.admission import Admission, receive_of
from penstock.server.access.gate import MAX_UNKNOWN_BODY, Gate
from penstock.server.access.idempotency import IdempotentRequests
from penstock.server.access.rules import PathNames
from penstock.server.iceberg import routes
from penstock.server.iceberg.call import Call, split_namespace
from penstock.server.iceberg.errors import error_reply, to_reply
from penstock.server.iceberg.loaded import LoadedReplies
from penstock.server.iceberg.recover import nothing
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import (
    Limits,
    Receive,
    Reply,
    decode_segment,
    read_body,
    read_query,
)


class IcebergProtocol:
    """Everything under /iceberg."""

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits,
        once: IdempotentRequests,
        warehouse: str,
        gate: Gate | None = None,
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._admission = Admission(gate, once)
        self._warehouse = warehouse
        self._gate = gate
        self._loaded = LoadedReplies()

    async def answer(self, exchange: Exchange) -> Reply:
        reply = await self._answer(exchange)
        # An answer to HEAD has no body.
        return _without_body(reply) if exchange.method == "HEAD" else reply

    async def _answer(self, exchange: Exchange) -> Reply:
        parts = exchange.segments[2:]
        if parts[:1] == [self._warehouse]:
            parts = parts[1:]
        found = routes.find(parts) if exchange.segments[1:2] == ["v1"] else {}
        if not found:
            return error_reply(
                404, "NoSuchEndpointException", f"nothing is served at {exchange.scope['path']}"
            )
        route = found.get(exchange.method)
        if route is None:
            return self._refuse_method(exchange, found)
        exchange.operation = f"Iceberg{route.name}"
        identity = None
        if self._gate is not None and not route.needs.is_open:
            if route.is_change:
                exchange.subject = "/".join(decode_segment(part) for part in parts).replace(
                    SEPARATOR, "$"
                )
            identity = await self._gate.enter(exchange, for_runners=route.for_runners)
        namespace, name = _read_names(parts)
        arrival = self._admission.arrive(exchange, route)
        call = Call(
            catalog=self._catalog,
            warehouse=self._warehouse,
            namespace=namespace,
            name=name,
            query=read_query(exchange.scope),
            body=await self._read_body(
                receive_of(exchange, arrival), is_known=identity is not None
            ),
            headers=exchange.headers,
            max_page=self._limits.max_page,
            loaded=self._loaded,
            endpoints=routes.ADVERTISED,
            key=None if arrival is None else arrival.key,
            gate=self._gate,
            identity=identity,
            address=exchange.address,
        )
        exchange.call = call

        async def run(standing: Standing | None) -> Reply:
            call.may_write = standing is None or standing.has(WRITE)
            return await route.handler(call)

        return await self._admission.answer(
            exchange,
            route,
            call,
            PathNames(call.id, call.namespace),
            arrival,
            run,
            self.fail,
            partial(route.recover or nothing, call),
        )

    async def _read_body(self, receive: Receive, *, is_known: bool) -> bytes:
        most = self._limits.max_json_bytes
        if self._gate is None or is_known:
            return await read_body(receive, most)
        return await read_body(
            receive, min(most, MAX_UNKNOWN_BODY), "send no more than a token request needs"
        )

    def fail(self, error: PenstockError, exchange: Exchange) -> Reply:
        reply = to_reply(error)
        return _without_body(reply) if exchange.method == "HEAD" else reply

    def fail_internally(self, exchange: Exchange) -> Reply:
        return error_reply(
            500,
            "InternalServerException",
            f"internal error; the server's log has the details under {exchange.request_id}",
        )

    def _refuse_method(self, exchange: Exchange, found: dict[str, routes.Route]) -> Reply:
        allowed = ", ".join(sorted(found))
        return error_reply(
            405,
            "UnsupportedOperationException",
            f"{exchange.scope['path']} does not answer to {exchange.method}; use {allowed}",
            ((b"allow", allowed.encode()),),
        )


def _without_body(reply: Reply) -> Reply:
    return Reply(reply.status, headers=reply.headers)


def _missing(levels: str, name: str, parts: list[str]) -> PenstockError:
    """The error for a namespace without a name: engines look for tables there, to say that none is.

    They take another error for a failure of the catalog.
    """
    namespace = tuple(levels.split(SEPARATOR))
    told = f"{'.'.join(namespace)!r} has a level without a name"
    if not name:
        return NamespaceNotFound(f"the namespace {told}", subject=namespace)
    error = ViewNotFound if parts[2] == "views" else TableNotFound
    return error(f"the namespace {told}", subject=(*namespace, name))


def _read_names(parts: list[str]) -> tuple[Identifier, str]:
    """The namespace in a path, and the name after it."""
    if parts[0] != "namespaces" or len(parts) < 2:
        return ROOT, ""
    levels = decode_segment(parts[1])
    name = decode_segment(parts[3]) if len(parts) > 3 else ""
    if "" in levels.split(SEPARATOR):
        raise _missing(levels, name, parts)
    namespace = split_namespace(levels, "the namespace in the path")
    if len(parts) > 3:
        check_identifier((*namespace, name), "the path")
    return namespace, name
