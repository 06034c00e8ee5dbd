"""Elements of HTML and SVG; whatever is put into one is text, unless it is an element itself."""

import html
from collections.abc import Iterable, Sequence
from typing import Any

# Fills that can be told apart on white and on black; text has the notebook's own colour.
GOOD, BUSY, WARN, BAD, IDLE = "#2e9e5b", "#3b7dd8", "#c98a1b", "#d6455d", "#8a8f98"


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, *inside: Any, **attributes: Any) -> Markup:
    """An element; an attribute's underscores are hyphens, and one of None is left out."""
    given = "".join(
        f' {key.strip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{join(inside)}</{name}>")


def join(parts: Iterable[Any]) -> Markup:
    """Parts one after the other; None is nothing."""
    return Markup("".join(map(_escape, parts)))


def table(
    title: str, rows: Iterable[Sequence[Any]], head: Sequence[Any] = (), note: str = ""
) -> Markup:
    """A table with a title above and a note below."""
    top = element("tr", *(element("th", each, style=LEFT) for each in head)) if head else None
    body = [element("tr", *(element("td", each, style=LEFT) for each in row)) for row in rows]
    return element(
        "div",
        element("strong", title) if title else None,
        element("table", top, *body),
        element("p", note) if note else None,
    )


def quiet(text: Any) -> Markup:
    """Text of less weight."""
    return element("span", text, style="opacity:0.65")


LEFT = "text-align:left;vertical-align:top"


def _escape(part: Any) -> str:
    if part is None:
        return ""
    return part if isinstance(part, Markup) else html.escape(str(part))
