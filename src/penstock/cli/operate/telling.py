"""How far a long command is, for whoever watches; and the lake that a folder stands for."""

import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from penstock.settings.sections import Settings

if TYPE_CHECKING:
    from penstock.lance.storage.lake import Lake

SECONDS = 1.0


@dataclass
class Teller:
    """Says on stderr how many are done, at most once a second."""

    verb: str
    is_quiet: bool = False
    _last: float = field(default_factory=time.monotonic)

    def __call__(self, done: int, of: int, name: str) -> None:
        now = time.monotonic()
        if self.is_quiet or (done < of and now - self._last < SECONDS):
            return
        self._last = now
        click.echo(f"{self.verb} {done} of {of} tables: {name}", file=sys.stderr)


def lake_at(folder: str, settings: Settings) -> "Lake":
    """A folder, or a place in a store, as a lake of its own."""
    from penstock.lance.storage.lake import Lake
    from penstock.settings.places import absolute_place

    return Lake(absolute_place(folder), (), dict(settings.storage.options))
