"""The messages of Arrow Flight SQL that are spoken here: what is asked, and how it is told.

A statement is known by an id, which stands in the descriptor that clients poll with, in the ticket
that they fetch its rows with, and in the information that they cancel it with. Pure.
"""

import struct

from penstock.errors import InvalidRequest, Unsupported
from penstock.server.flight.protobuf import (
    Fields,
    decode,
    encode,
    read_bytes,
    read_message,
    read_text,
)

SERVICE = "/arrow.flight.protocol.FlightService/"
STATEMENT_QUERY = "type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"
# Our own words for a statement that was submitted.
SUBMITTED = "penstock/statement"
COMMAND = 2
CANCEL = "CancelFlightInfo"
CANCELED = 1
CONTINUATION = b"\xff\xff\xff\xff"


def read_descriptor(data: bytes) -> tuple[str, str]:
    """The SQL of a new statement, or the id of one that was submitted; the other one is empty."""
    return _read_command(decode(data))


def read_ticket(data: bytes) -> str:
    return read_text(decode(data), 1)


def read_cancel(data: bytes) -> str:
    """The id of the statement that an action is to cancel."""
    action = decode(data)
    if read_text(action, 1) != CANCEL:
        raise Unsupported(
            f"the action {read_text(action, 1)[:100]!r} is not served",
            detail=f"use {CANCEL}, or plain HTTP",
        )
    info = read_message(decode(read_bytes(action, 2)), 1)
    return _read_command(read_message(info, 2))[1]


def make_descriptor(id: str) -> bytes:
    return encode({1: COMMAND, 2: encode({1: SUBMITTED, 2: id})})


def make_poll(id: str, schema: bytes | None, ends_at: float) -> bytes:
    """How far a statement is; without its schema there are no rows yet."""
    is_over = schema is not None
    return encode(
        {
            1: make_info(id, schema),
            2: None if is_over else make_descriptor(id),
            4: encode({1: int(ends_at)}),
        }
    )


def make_info(id: str, schema: bytes | None) -> bytes:
    """What a client needs to fetch the rows: one place, which is here."""
    endpoint = None if schema is None else encode({1: encode({1: id})})
    told = None if schema is None else frame(schema)
    # How many rows and bytes there are is not known.
    unknown = 2**64 - 1
    return encode({1: told, 2: make_descriptor(id), 3: endpoint, 4: unknown, 5: unknown})


def make_cancel_result() -> bytes:
    return encode({1: encode({1: CANCELED})})


def make_data(header: bytes, body: bytes) -> bytes:
    return encode({2: header, 1000: body})


def frame(message: bytes) -> bytes:
    """The head of an Arrow message as it stands in a stream."""
    return CONTINUATION + struct.pack("<i", len(message)) + message


def _read_command(descriptor: Fields) -> tuple[str, str]:
    command = read_message(descriptor, 2) if descriptor.get(1) == COMMAND else {}
    kind = read_text(command, 1)
    if kind == SUBMITTED:
        return "", read_text(command, 2)
    if kind != STATEMENT_QUERY:
        raise Unsupported(
            f"Flight's command {kind[:200] or 'without a type'!r} is not served",
            detail="send a query (CommandStatementQuery)",
        )
    query = read_message(command, 2)
    if read_bytes(query, 2):
        raise Unsupported("there are no transactions", detail="send the query without one")
    sql = read_text(query, 1)
    if not sql:
        raise InvalidRequest("the query is empty", detail="send a query: SELECT … FROM …")
    return sql, ""
