"""One call of a Lance operation: its id, parameters, body and context, decoded on demand."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.errors import InvalidRequest
from penstock.model.allowances import Allowance, read_allowance
from penstock.model.identifiers import Identifier, show
from penstock.model.origins import IdempotencyKey, Origin
from penstock.model.paging import PageRequest, request_page
from penstock.model.principals import Identity
from penstock.server.transport.http import Connection, Headers, Receive, decode_json, find_trace_id

B = TypeVar("B", bound="Body")

# The largest number leaves room for the next version.
Version = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 2)]
# Text that a database can store: PostgreSQL has no NUL.
Text = Annotated[str, msgspec.Meta(pattern="^[^\\x00]*$", max_length=2000)]


ARROW_STREAM = "application/vnd.apache.arrow.stream"


class Body(msgspec.Struct, kw_only=True):
    """Fields of any JSON body; unknown fields are ignored, null is the same as absent."""

    id: list[str] | None = None
    identity: Any = None
    context: dict[str, Any] | None = None


@dataclass(slots=True)
class Call:
    """A request for one operation."""

    catalog: Catalog
    id: Identifier
    delimiter: str
    query: Mapping[str, list[str]]
    body: bytes
    headers: Headers
    max_page: int
    receive: Receive
    connection: Connection
    # What the path names within the object: an index, or a column and a row.
    names: tuple[str, ...] = ()
    key: IdempotencyKey | None = None
    # None where authentication is off.
    identity: Identity | None = None
    # The grantees that a listing is limited to; None when the caller may see everything.
    only: tuple[str, ...] | None = None
    # Whether the caller may write to the object in the path.
    may_write: bool = True
    # Whether the path ends with a slash, as the routes of lancedb's remote tables do: where those
    # and the protocol's differ in their answers only, nothing else tells them apart.
    is_from_lancedb: bool = False
    # Whether the caller would still be let in, for long-running answers.
    still_allowed: Callable[[], Awaitable[bool]] | None = None
    body_context: dict[str, str] = field(default_factory=dict)

    def decode(self, decoder: "msgspec.json.Decoder[B]") -> B:
        """The JSON body; a missing one or `null` is an empty object."""
        text = self.body.strip()
        body = decode_json(decoder, b"{}" if text in (b"", b"null") else text, "operation")
        if body.id is not None and tuple(body.id) != self.id:
            raise InvalidRequest(
                f"id in the body is {show(tuple(body.id))}, in the path {show(self.id)}",
                detail="leave it out of the body, or make them agree",
            )
        if body.context:
            self.body_context = {k: v for k, v in body.context.items() if isinstance(v, str)}
        return body

    @property
    def context(self) -> dict[str, str]:
        """Context that the caller sends with its request; headers win over the body."""
        return self.body_context | self.headers.context()

    @property
    def trace_id(self) -> str:
        """The caller's trace, from its context or from a W3C traceparent header."""
        return find_trace_id(self.context)

    @property
    def token(self) -> str:
        """The id of the caller's key; empty without one."""
        return "" if self.identity is None else self.identity.token

    @property
    def origin(self) -> Origin:
        """The origin of this call's changes."""
        keys = () if self.key is None else (self.key,)
        if self.identity is None:
            return Origin(self.trace_id, keys)
        who = self.identity
        runner_key = who.token if who.is_runner else ""
        return Origin(self.trace_id, keys, who.principal, who.grantees, runner_key)

    @property
    def has_arrow_body(self) -> bool:
        """Whether the body is said to be an Arrow stream, where JSON is usual."""
        kind = self.headers.values.get("content-type", "").partition(";")[0]
        return kind.strip().lower() == ARROW_STREAM

    def text(self, name: str) -> str | None:
        values = self.query.get(name)
        return values[-1] if values else None

    def flag(self, name: str) -> bool | None:
        """A boolean query parameter; None when it is absent."""
        value = self.text(name)
        if value is None:
            return None
        if value.lower() not in ("true", "false", "1", "0"):
            raise InvalidRequest(f"{name} is {value!r}", detail="use true or false")
        return value.lower() in ("true", "1")

    def allowance(self) -> Allowance:
        """What the change may do to what depends on its object."""
        return read_allowance(self.flag("cascade"), self.flag("force"))

    def page(self, scope: str) -> PageRequest:
        """The page that the query asks for."""
        limit = self.text("limit")
        if limit is not None and not re.fullmatch(r"-?\d{1,18}", limit):
            raise InvalidRequest(f"limit is {limit!r}", detail="use a whole number")
        number = None if limit is None else int(limit)
        return request_page(scope, self.text("page_token"), number, self.max_page)


def choose(name: str, value: str | None, choices: tuple[str, ...]) -> str:
    """A mode in PascalCase or snake_case, in any case; the first choice is the default."""
    if value is None:
        return choices[0]
    word = value.replace("_", "").lower()
    for choice in choices:
        if choice.replace("_", "") == word:
            return choice
    raise InvalidRequest(f"{name} is {value!r}", detail="use one of " + ", ".join(choices))
