"""Identifiers: lists of names, and which names are legal.

Names appear in URL paths, which clients and proxies decode, sometimes twice, and normalise. No name
may lead elsewhere then, so `check_name` checks every name of everything.
"""

import re
import unicodedata
from urllib.parse import unquote

from penstock.errors import InvalidRequest

Identifier = tuple[str, ...]

ROOT: Identifier = ()
# Stored paths join names with a character that no name may contain.
SEPARATOR = "\x1f"
MAX_NAME_BYTES = 255
# PostgreSQL refuses index entries of more than about 2,700 bytes; this stays well below.
MAX_IDENTIFIER_BYTES = 1600


_SEPARATORS = re.compile(r"[/\\]")
_DOTS = (".", "..")


def check_name(name: str, what: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Return the name, or say what makes it unusable."""
    if not name or name.isspace():
        raise InvalidRequest(
            f"{what} is {'blank' if name else 'empty'}", detail="give every part of the id a name"
        )
    # Most names are plain, and each request checks some.
    if not (name.isascii() and name.replace("_", "").isalnum()) and _leads_elsewhere(name):
        raise InvalidRequest(
            f"{what} {name!r} is, or holds, a step to another path",
            detail="choose a name without '.' or '..' between slashes, also when it is decoded",
        )
    if not name.isprintable() and (bad := _find_bad(name)) is not None:
        raise InvalidRequest(
            f"{what} {name!r} holds the character U+{ord(bad):04X}",
            detail="remove control characters from the name",
        )
    if len(name) * 4 > max_bytes and len(name.encode()) > max_bytes:
        raise InvalidRequest(
            f"{what} is {len(name.encode())} bytes long",
            detail=f"use at most {max_bytes} bytes of UTF-8",
        )
    return name


def check_part(name: str, what: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    """Check a name that must stay one segment of a path, however the path is normalised."""
    if found := _SEPARATORS.search(check_name(name, what, max_bytes)):
        raise InvalidRequest(
            f"{what} {name!r} holds {found[0]!r}", detail="choose a name without slashes"
        )
    return name


def check_identifier(parts: Identifier, what: str = "id") -> Identifier:
    """Return the identifier when its names and its total length are legal."""
    for part in parts:
        check_name(part, f"a name in {what}")
    if len(key := to_path(parts)) * 4 > MAX_IDENTIFIER_BYTES and (
        len(key.encode()) > MAX_IDENTIFIER_BYTES
    ):
        raise InvalidRequest(
            f"{what} is {len(key.encode())} bytes long",
            detail=f"use at most {MAX_IDENTIFIER_BYTES} bytes in all",
        )
    return parts


def parse_identifier(text: str, delimiter: str) -> Identifier:
    """Split an id from a URL; the delimiter alone is the root."""
    if not delimiter:
        raise InvalidRequest("delimiter is empty", detail="leave it out to use '$'")
    if text == delimiter:
        return ROOT
    return check_identifier(tuple(text.split(delimiter)))


def split_table(identifier: Identifier) -> tuple[Identifier, str]:
    """The namespace and the name in a table's identifier."""
    if not identifier:
        raise InvalidRequest(
            "the id names the root namespace, not a table", detail="give the table's name"
        )
    return identifier[:-1], identifier[-1]


def to_path(parts: Identifier) -> str:
    """The stored form of an identifier."""
    return SEPARATOR.join(parts)


def from_path(path: str) -> Identifier:
    """The identifier of a stored form."""
    return tuple(path.split(SEPARATOR)) if path else ROOT


def show(parts: Identifier) -> str:
    """An identifier for messages."""
    return "$".join(parts) if parts else "the root namespace"


def _leads_elsewhere(name: str) -> bool:
    """Whether a name has a step '.' or '..', however often it is decoded."""
    if "." not in name and "%" not in name and name.isascii():
        return False
    while (decoded := unquote(name, errors="replace")) != name:
        name = decoded
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name)
    # Some treat what follows a semicolon as a parameter of the step.
    steps = _SEPARATORS.split(name)
    return any(step.partition(";")[0].strip() in _DOTS for step in steps)


def _find_bad(name: str) -> str | None:
    return next(
        (c for c in name if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff"), None
    )
