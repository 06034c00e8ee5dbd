"""Hide secrets in texts: what functions print and raise is written down and sent."""

import functools
import json
import os
from collections.abc import Iterable
from urllib.parse import quote

# Names the variables of a worker that hold secrets.
VARIABLE = "PENSTOCK_SECRET_VARIABLES"
HIDDEN = "***"
# Parts of a secret of several lines count by themselves, unless they are hardly telling.
LEAST_PART = 6


class Redaction:
    """Hides values, however they are written."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {spelling for value in values if value for spelling in _spell(value)}
        # The longest first, so that nothing of it is left beside a part of it.
        self._spellings = sorted(found, key=lambda text: (-len(text), text))

    def hide(self, text: str) -> str:
        for spelling in self._spellings:
            text = text.replace(spelling, HIDDEN)
        return text


def hide(text: str) -> str:
    """A text without the secrets of this worker."""
    return of_worker().hide(text)


@functools.cache
def of_worker() -> Redaction:
    """The secrets that this process was started with, whatever becomes of its environment."""
    return Redaction(_values_at_start().values())


def restore() -> None:
    """Give a function its secrets as they are, whatever another one did to the environment."""
    os.environ.update(_values_at_start())


@functools.cache
def _values_at_start() -> dict[str, str]:
    names = os.environ.get(VARIABLE, "").split(",")
    return {name: os.environ.get(name, "") for name in names if name}


def _spell(value: str) -> set[str]:
    """A value as it stands in texts: by itself, quoted in one way or another, or in its lines."""
    parts = {value, value.strip()}
    parts |= {line.strip() for line in value.splitlines() if len(line.strip()) >= LEAST_PART}
    return {
        spelling
        for part in parts
        if part
        for spelling in (
            part,
            repr(part)[1:-1],
            json.dumps(part)[1:-1],
            repr(part.encode(errors="replace"))[2:-1],
            quote(part),
            quote(part, safe=""),
        )
    }
