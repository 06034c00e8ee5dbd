"""Names as people write and read them: `shop.items`, and h.`a.b` where a part has such a sign."""

import re

from penstock.errors import InvalidRequest
from penstock.model.identifiers import ROOT, Identifier, check_identifier

# With its namespaces: `shop.items`, or its parts.
Name = str | Identifier | list[str]

# A part in back-quotes, in which a doubled one stands for itself, or one without separators.
PART = re.compile(r"`((?:[^`]|``)*)`(?=[.$]|\Z)|([^`.$][^.$]*)?(?=[.$]|\Z)")
# What a part is quoted for.
SPECIAL = re.compile(r"[.$`]")


def read_id(name: Name, what: str = "the name") -> Identifier:
    """Split a name: `shop.items`, `shop$items`; a part with such a sign is in back-quotes."""
    if not isinstance(name, str):
        return check_identifier(tuple(name), what)
    return check_identifier(tuple(_split(name, what)), what) if name else ROOT


def read_new_id(name: Name, old: Identifier) -> Identifier:
    """A new name for something; one without a namespace stays in that of the old name."""
    wanted = read_id(name, "the new name")
    if not wanted:
        raise InvalidRequest("the new name is empty", detail="give it a name")
    return (*old[:-1], *wanted) if isinstance(name, str) and len(wanted) == 1 else wanted


def show_id(parts: Identifier) -> str:
    """A name as `read_id` reads it."""
    return ".".join(map(_quote, parts))


def _quote(part: str) -> str:
    return "`" + part.replace("`", "``") + "`" if SPECIAL.search(part) else part


def _split(name: str, what: str) -> list[str]:
    parts, at = [], 0
    while True:
        found = PART.match(name, at)
        if found is None:
            raise InvalidRequest(
                f"{what} {name!r} has a back-quote that is not closed at the end of a part",
                detail="write a part with a dot as in h.`a.b`, and a back-quote in it twice",
            )
        quoted, plain = found.groups()
        parts.append(plain or "" if quoted is None else quoted.replace("``", "`"))
        if found.end() == len(name):
            return parts
        at = found.end() + 1
