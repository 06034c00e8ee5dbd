"""Identifiers: lists of names, and which names are legal."""

from penstock.errors import InvalidRequest

Identifier = tuple[str, ...]

ROOT: Identifier = ()
# Stored paths join names with a character that no name may hold.
SEPARATOR = "\x1f"
MAX_NAME_BYTES = 255
# PostgreSQL refuses index entries past about 2,700 bytes; this keeps well below.
MAX_IDENTIFIER_BYTES = 1600


def check_name(name: str, what: str) -> str:
    """Return the name, or say what makes it unusable."""
    if not name:
        raise InvalidRequest(f"{what} is empty", detail="give every part of the id a name")
    if name in (".", ".."):
        raise InvalidRequest(f"{what} {name!r} is reserved", detail="choose another name")
    if not name.isprintable() and (bad := _find_bad(name)) is not None:
        raise InvalidRequest(
            f"{what} {name!r} holds the character U+{ord(bad):04X}",
            detail="remove control characters from the name",
        )
    if len(name) * 4 > MAX_NAME_BYTES and len(name.encode()) > MAX_NAME_BYTES:
        raise InvalidRequest(
            f"{what} is {len(name.encode())} bytes long",
            detail=f"use at most {MAX_NAME_BYTES} bytes of UTF-8",
        )
    return name


def check_identifier(parts: Identifier, what: str = "id") -> Identifier:
    """Return the identifier when each of its names and its whole length are legal."""
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
    """Split an id as it stands in a URL; the delimiter alone is the root."""
    if not delimiter:
        raise InvalidRequest("delimiter is empty", detail="leave it out to use '$'")
    if text == delimiter:
        return ROOT
    return check_identifier(tuple(text.split(delimiter)))


def split_table(identifier: Identifier) -> tuple[Identifier, str]:
    """The namespace and the name of a table's identifier."""
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
    """An identifier as people read it in messages."""
    return "$".join(parts) if parts else "the root namespace"


def _find_bad(name: str) -> str | None:
    return next(
        (c for c in name if c < " " or "\x7f" <= c <= "\x9f" or "\ud800" <= c <= "\udfff"), None
    )
