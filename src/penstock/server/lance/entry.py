"""The entry to the Lance protocol: find the operation, call it, answer."""

from dataclasses import replace
from functools import lru_cache, partial

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs.ledger import refuse_write
from penstock.errors import (
    ColumnNotFound,
    FunctionNotFound,
    NeedsConsent,
    PenstockError,
    TableInUse,
    TagNotFound,
)
from penstock.model.codes import INTERNAL, UNSUPPORTED
from penstock.model.identifiers import ROOT, Identifier, parse_identifier, show
from penstock.model.principals import Identity
from penstock.model.rights import WRITE, Standing
from penstock.model.system_tables import LEDGER
from penstock.server.access.admission import Admission, receive_of
from penstock.server.access.gate import MAX_UNKNOWN_BODY, SEND_LESS, Gate
from penstock.server.access.idempotency import IdempotentRequests
from penstock.server.access.rules import PathNames
from penstock.server.lance import router
from penstock.server.lance.call import Call
from penstock.server.lance.errors import error_reply, to_reply
from penstock.server.lance.lancedb.headers import LANCEDB_HEADER
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.recover import transaction
from penstock.server.transport.exchange import Exchange
from penstock.server.transport.http import (
    CONNECTION,
    Limits,
    Reply,
    decode_segment,
    ends_with_slash,
    read_body,
    read_query,
    replay,
)

# lancedb asks in the forms that a server of this version knows: several vectors in one request
# from 0.2 on, structured text queries from 0.3 on. Without the header it sends the forms of 0.1.
LANCEDB_HEADERS = ((b"phalanx-version", b"0.5.0"),)

# What lancedb would take for a missing table if the status were 404.
WITHIN_TABLE = (ColumnNotFound, FunctionNotFound, TagNotFound)

# What lancedb would try again, and in the end not tell, if the status were 409.
NOT_TO_RETRY = (TableInUse, NeedsConsent)


class LanceProtocol:
    """Everything under /v1."""

    def __init__(
        self, catalog: Catalog, limits: Limits, once: IdempotentRequests, gate: Gate | None = None
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._admission = Admission(gate, once)
        self._gate = gate
        self._encode = msgspec.json.Encoder().encode

    async def answer(self, exchange: Exchange) -> Reply:
        match = router.find(exchange.segments)
        if match is None:
            return error_reply(
                404,
                UNSUPPORTED,
                f"nothing is served at {exchange.scope['path']}",
                "check the path against the Lance Namespace REST specification; the Iceberg "
                "catalog is under /iceberg",
                exchange.request_id,
            )
        operation = match.operation
        exchange.operation = operation.name
        if exchange.method not in (operation.method, operation.also):
            return self.refuse_method(exchange, operation.method)
        identity = None
        if self._gate is not None:
            if operation.is_change:
                exchange.subject = "" if match.id is None else decode_segment(match.id)
            identity = await self._identify(self._gate, operation, exchange)
        query = read_query(exchange.scope)
        delimiter = query.get("delimiter", ["$"])[-1]
        id = ROOT if match.id is None else _read_id(match.id, delimiter)
        if exchange.subject is not None and id:
            # With whichever delimiter it was sent.
            exchange.subject = show(id)
        arrival = self._admission.arrive(exchange, operation)
        receive = receive_of(exchange, arrival)
        call = Call(
            catalog=self._catalog,
            id=id,
            delimiter=delimiter,
            query=query,
            body=b""
            if operation.streams
            else await read_body(receive, self._limits.max_json_bytes),
            headers=exchange.headers,
            max_page=self._limits.max_page,
            names=tuple(decode_segment(name) for name in match.names),
            receive=receive,
            connection=exchange.scope["extensions"][CONNECTION],
            key=None if arrival is None else arrival.key,
            identity=identity,
            is_from_lancedb=ends_with_slash(exchange.scope),
        )
        exchange.call = call
        names = PathNames(call.id, call.id[:-1])

        async def run(standing: Standing | None) -> Reply:
            if id == LEDGER and operation.is_change and not operation.is_for_ledger:
                raise refuse_write()
            if standing is not None and self._gate is not None and identity is not None:
                call.may_write = standing.has(WRITE)
                call.still_allowed = partial(
                    self._gate.still_admits, identity, operation.needs, call, names, exchange
                )
            return await self._run(operation, call)

        return await self._admission.answer(
            exchange,
            operation,
            call,
            names,
            arrival,
            run,
            self.fail,
            partial(operation.recover or transaction, call),
        )

    def fail(self, error: PenstockError, exchange: Exchange) -> Reply:
        reply = to_reply(error, exchange.request_id)
        # Its backfills of columns, for one, come without the slash.
        is_slashed = ends_with_slash(exchange.scope)
        is_marked = LANCEDB_HEADER in exchange.headers.values
        if (
            (is_slashed and isinstance(error, WITHIN_TABLE))
            or (is_marked and isinstance(error, ColumnNotFound))
            or ((is_slashed or is_marked) and isinstance(error, NOT_TO_RETRY))
        ):
            return replace(reply, status=400)
        return reply

    def fail_internally(self, exchange: Exchange) -> Reply:
        return error_reply(
            500,
            INTERNAL,
            "internal error",
            "report it with the instance id; the server's log has the details",
            exchange.request_id,
        )

    def refuse_method(self, exchange: Exchange, allowed: str) -> Reply:
        return error_reply(
            405,
            UNSUPPORTED,
            f"{exchange.operation} does not answer to {exchange.method}",
            f"use {allowed}",
            exchange.request_id,
            ((b"allow", allowed.encode()),),
        )

    async def _identify(
        self, gate: Gate, operation: LanceOperation, exchange: Exchange
    ) -> Identity:
        """The caller's identity; credentials in the body count when the headers have none."""
        identity = await gate.identify(exchange)
        if identity is None and not operation.streams:
            body = await read_body(exchange.receive, MAX_UNKNOWN_BODY, SEND_LESS)
            exchange.receive = replay(body, exchange.receive)
            identity = await gate.identify_body(body, exchange)
        return await gate.enter(
            exchange, identity, operation.work, for_runners=operation.for_runners
        )

    async def _run(self, operation: LanceOperation, call: Call) -> Reply:
        result = await operation.handler(call)
        if isinstance(result, Reply):
            return result
        body = b"" if result is None else self._encode(result)
        return Reply(200, body, headers=LANCEDB_HEADERS if call.is_from_lancedb else ())


@lru_cache(maxsize=4096)
def _read_id(segment: str, delimiter: str) -> Identifier:
    """The id in a path; cached, because clients name the same few again and again."""
    return parse_identifier(decode_segment(segment), delimiter)
