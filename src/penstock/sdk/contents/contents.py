"""What all parts of a lake share: its connection, and listings of names."""

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

from penstock.errors import InvalidRequest, NotFound
from penstock.model.identifiers import ROOT
from penstock.sdk.connection.names import Name, read_id, show_id
from penstock.sdk.connection.wire import Wire, path_of

IfExists = Literal["error", "ok", "replace"]
# What the server calls each.
MODES = {"error": "create", "ok": "exist_ok", "replace": "overwrite"}
NAMES_AT_ONCE = 1_000


class Contents:
    """A connection to a server, and what there is by name."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _names(self, namespace: Name | None, kind: str) -> list[str]:
        """The names of a kind in a namespace, or of all."""
        body: dict[str, Any] = {"kinds": [kind], "limit": NAMES_AT_ONCE}
        if namespace is None:
            path, body = path_of("namespace", ROOT, "names/search"), {**body, "text": ""}
        else:
            path = path_of("namespace", read_id(namespace), "names/list")
        pages = self._wire.pages(
            lambda token: self._wire.read(path, {**body, "page_token": token}), "names"
        )
        return [show_id(tuple(each["id"])) for page in pages for each in page]


@contextlib.contextmanager
def missing(is_ok: bool) -> Iterator[None]:
    """Leave out what is not there, if that is fine."""
    try:
        yield
    except NotFound:
        if not is_ok:
            raise


def check_word(name: str, given: str, *known: str) -> None:
    """Refuse an argument that is none of the known words."""
    if given not in known:
        raise InvalidRequest(f"{name} is {given!r}", detail="use " + ", ".join(map(repr, known)))
