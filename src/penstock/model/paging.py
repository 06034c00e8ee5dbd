"""Pages of a listing: opaque keyset tokens, each bound to its listing."""

import base64
import binascii
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from penstock.errors import InvalidRequest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The part of a listing that is wanted: `limit` entries after `after`."""

    scope: str
    limit: int
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    items: list[T]
    token: str | None = None


def request_page(
    scope: str,
    token: str | None,
    limit: int | None,
    max_limit: int,
    names: tuple[str, str] = ("limit", "page_token"),
) -> PageRequest:
    """Check a client's page parameters, under its protocol's names; an empty token is page one."""
    if limit is not None and limit < 1:
        raise InvalidRequest(f"{names[0]} is {limit}", detail="ask for at least 1 entry")
    wanted = max_limit if limit is None else min(limit, max_limit)
    return PageRequest(scope, wanted, _decode(token, scope, names[1]) if token else None)


def cut_page(request: PageRequest, rows: list[T], keys: list[str]) -> Page[T]:
    """Make a page from rows that were read with one more than the limit."""
    if len(rows) <= request.limit:
        return Page(rows)
    return Page(rows[: request.limit], make_token(request, keys[request.limit - 1]))


def make_token(request: PageRequest, key: str) -> str:
    """The token of the page after the entry with this key."""
    body = msgspec.json.encode([request.scope, key])
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def _decode(token: str, scope: str, name: str) -> str:
    try:
        body = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        found, after = msgspec.json.decode(body, type=tuple[str, str])
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        found, after = "", ""
    if found != scope or "\x00" in after:
        raise InvalidRequest(
            f"{name} does not belong to this listing",
            detail="pass the token of the previous answer unchanged, or leave it out",
        )
    return after
