"""Where engines meet a server: its address, a temporary folder, and what was fetched."""

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tests.engines.cache import Cache
from tests.harness.processes.servers import running


@dataclass(frozen=True)
class Place:
    """One server of ours, with a folder in which its clients may put tables themselves."""

    url: str
    folder: Path
    cache: Cache

    @property
    def iceberg(self) -> str:
        return f"{self.url}/iceberg"

    @property
    def outside(self) -> Path:
        """Where its clients may put tables themselves."""
        return self.folder / "outside"

    @property
    def log(self) -> Path:
        """Where an engine's own words go."""
        return self.folder / "engine.log"


@contextlib.contextmanager
def open_place(cache: Cache) -> Iterator[Place]:
    """A server of its own, without any setting but that folder, for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="penstock-engines-") as name:
        folder = Path(name).resolve()
        place = Place("", folder, cache)
        place.outside.mkdir()
        environ = {"PENSTOCK__STORAGE__ALLOWED_ROOTS": str(place.outside)}
        with running(folder / "data", environ=environ) as server:
            yield replace(place, url=server.url)
