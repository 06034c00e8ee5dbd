"""A job's events as an Arrow stream, as lancedb's client reads them. Blocks."""

import io
import re
from collections.abc import Sequence
from typing import Protocol

from penstock.errors import InvalidRequest
from penstock.lance.doors import pa

COLUMNS = ("state", "updated_by", "emitted_from", "emitted_by", "claim_entity", "message", "job_id")
_TERM = re.compile(
    r"\s*(?P<name>\w+)\s*(?:(?P<sign>=|!=|<>)\s*'(?P<text>(?:[^']|'')*)'"
    r"|(?P<not>not\s+)?in\s*\((?P<texts>[^()]*)\))\s*",
    re.IGNORECASE,
)
_TEXT = re.compile(r"'((?:[^']|'')*)'")


class Event(Protocol):
    """A change of a job, as the catalog recorded it."""

    @property
    def job_id(self) -> str: ...
    @property
    def at(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def runner(self) -> str: ...
    @property
    def message(self) -> str: ...


def encode_events(events: Sequence[Event], condition: str | None) -> bytes:
    """The matching events as an Arrow IPC stream; an empty one has its schema."""
    schema = _schema()
    rows = [row for row in map(_to_row, events) if _matches(row, condition)]
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return sink.getvalue()


def _schema() -> "pa.Schema":
    texts = [pa.field(name, pa.string()) for name in COLUMNS]
    return pa.schema(
        [*texts, pa.field("attempt", pa.int64()), pa.field("updated_at_millis", pa.int64())]
    )


def _to_row(event: Event) -> dict[str, str | int]:
    return {
        "state": event.state.lower(),
        "updated_by": event.runner or "server",
        "emitted_from": "runner" if event.runner else "server",
        "emitted_by": event.runner or "server",
        "claim_entity": f"{event.job_id}/{event.attempt}",
        "message": event.message,
        "job_id": event.job_id,
        "attempt": event.attempt,
        "updated_at_millis": event.at,
    }


def _matches(row: dict[str, str | int], condition: str | None) -> bool:
    """Evaluate `column = 'text'`, `!=` and `IN (…)`, joined by AND and OR."""
    if condition is None or not condition.strip():
        return True
    alternatives, at = [True], 0
    while True:
        term = _TERM.match(condition, at)
        if term is None or term["name"].lower() not in COLUMNS:
            raise InvalidRequest(
                f"filter {condition[:200]!r} cannot be read",
                detail="write column = 'text', != or IN ('a', 'b'), joined by AND and OR; the "
                "columns are " + ", ".join(COLUMNS),
            )
        alternatives[-1] = alternatives[-1] and _holds(row, term)
        at = term.end()
        joint = re.compile(r"(and|or)\b", re.IGNORECASE).match(condition, at)
        if joint is None:
            if at == len(condition):
                return any(alternatives)
            raise InvalidRequest(
                f"filter {condition[:200]!r} cannot be read", detail="join terms by AND and OR"
            )
        if joint[1].lower() == "or":
            alternatives.append(True)
        at = joint.end()


def _holds(row: dict[str, str | int], term: "re.Match[str]") -> bool:
    value = row[term["name"].lower()]
    if term["sign"]:
        is_same = value == term["text"].replace("''", "'")
        return is_same == (term["sign"] == "=")
    listed = [text.replace("''", "'") for text in _TEXT.findall(term["texts"])]
    return (value in listed) != bool(term["not"])
