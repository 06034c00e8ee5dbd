"""One call of an Iceberg route: the names in its path, its parameters and its body."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.errors import InvalidRequest
from penstock.model.identifiers import SEPARATOR, Identifier, check_identifier
from penstock.model.origins import IdempotencyKey, Origin
from penstock.model.paging import PageRequest, request_page
from penstock.model.principals import Identity
from penstock.model.rights import READ, VIEW, Need
from penstock.server.access.gate import Gate
from penstock.server.iceberg.loaded import LoadedReplies
from penstock.server.transport.http import Headers, decode_json, find_trace_id

B = TypeVar("B")

# Without a page token, the whole listing is returned.
EVERYTHING = 2**31


class Name(msgspec.Struct):
    """A table's or view's identifier in a body."""

    namespace: list[str]
    name: str

    def to_identifier(self, what: str) -> Identifier:
        return check_identifier((*check_namespace(self.namespace, what), self.name), what)


class Rename(msgspec.Struct):
    """The body of a rename."""

    source: Name
    destination: Name


@dataclass(slots=True)
class Call:
    """A request for one route; `namespace` and `name` are those in the path."""

    catalog: Catalog
    warehouse: str
    namespace: Identifier
    name: str
    query: Mapping[str, list[str]]
    body: bytes
    headers: Headers
    max_page: int
    loaded: LoadedReplies
    # The endpoints that clients are told about.
    endpoints: Sequence[str]
    key: IdempotencyKey | None = None
    # None where authentication is off; a request for a token is anonymous.
    gate: Gate | None = None
    identity: Identity | None = None
    address: str = ""
    # The grantees that a listing is limited to; None when the caller may see everything.
    only: tuple[str, ...] | None = None
    # Whether the caller may write what it reads.
    may_write: bool = True

    @property
    def id(self) -> Identifier:
        return (*self.namespace, self.name)

    @property
    def trace_id(self) -> str:
        return find_trace_id(self.headers.context())

    @property
    def origin(self) -> Origin:
        keys = () if self.key is None else (self.key,)
        if self.identity is None:
            return Origin(self.trace_id, keys)
        return Origin(self.trace_id, keys, self.identity.principal, self.identity.grantees)

    async def may_read(self, id: Identifier) -> bool:
        """Whether the caller may read a table or view."""
        if self.gate is None or self.identity is None:
            return self.gate is None
        return await self.gate.access.may(self.identity, Need(READ, VIEW, id))

    def decode(self, decoder: "msgspec.json.Decoder[B]") -> B:
        """The JSON body."""
        return decode_json(decoder, self.body, "route")

    def text(self, name: str) -> str | None:
        values = self.query.get(name)
        return values[-1] if values else None

    def choose(self, name: str, choices: Sequence[str]) -> str:
        """A parameter with a few values; the first one if it is not given."""
        found = self.text(name) or choices[0]
        if found.lower() not in choices:
            raise InvalidRequest(f"{name} is {found!r}", detail="use " + " or ".join(choices))
        return found.lower()

    def page(self, scope: str) -> PageRequest:
        """The page that the query asks for; everything without a token."""
        size, token = self.text("pageSize"), self.text("pageToken")
        if size is not None and not re.fullmatch(r"\d{1,18}", size):
            raise InvalidRequest(f"pageSize is {size!r}", detail="use a whole number from 1")
        count = None if size is None else int(size)
        request = request_page(scope, token, count, self.max_page, ("pageSize", "pageToken"))
        return PageRequest(scope, EVERYTHING) if token is None else request


def split_namespace(text: str, what: str) -> Identifier:
    """A namespace as one string, its levels joined by the separator."""
    return check_namespace(text.split(SEPARATOR), what)


def check_namespace(levels: list[str], what: str) -> Identifier:
    if not levels:
        raise InvalidRequest(f"{what} has no levels", detail="name at least one level")
    return check_identifier(tuple(levels), what)


# A body whose form the view rules check themselves.
any_object: "msgspec.json.Decoder[dict[str, Any]]" = msgspec.json.Decoder(dict[str, Any])
renaming: "msgspec.json.Decoder[Rename]" = msgspec.json.Decoder(Rename)
