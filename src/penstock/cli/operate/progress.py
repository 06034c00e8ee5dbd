"""Progress of long commands on stderr, and a folder opened as a lake."""

import sys
import time
from dataclasses import dataclass, field

import click

from penstock.lance.storage.lake import Lake
from penstock.settings.places import absolute_place
from penstock.settings.sections import Settings

SECONDS = 1.0


@dataclass
class ProgressPrinter:
    """Prints on stderr how many are done, at most once a second."""

    verb: str
    is_quiet: bool = False
    _last: float = field(default_factory=time.monotonic)

    def __call__(self, done: int, of: int, name: str) -> None:
        now = time.monotonic()
        if self.is_quiet or (done < of and now - self._last < SECONDS):
            return
        self._last = now
        click.echo(f"{self.verb} {done} of {of} tables: {name}", file=sys.stderr)


def lake_at(folder: str, settings: Settings) -> Lake:
    """Open a folder, or a place in a store, as a lake."""
    return Lake(absolute_place(folder), (), dict(settings.storage.options))
