"""A folder of the lake whose files live for minutes: results on their way to whoever asked.

Everything here blocks.
"""

import contextlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import obstore

from penstock.errors import InvalidRequest
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place

# How much is copied at a time.
PART_BYTES = 4 * 1024 * 1024


class Readable(Protocol):
    """What a body is read from."""

    def read(self, size: int = -1) -> Any: ...


def write(place: Place, name: str, source: Readable | bytes, max_bytes: int) -> None:
    """Keep a file that nobody sees half-written; a longer one than allowed is refused."""
    parts = iter([source]) if isinstance(source, bytes) else _read(source)
    limited = _limit(parts, max_bytes)
    with files.storage(place):
        if not place.is_local:
            obstore.put(place.store, f"{place.key}/{name}", limited)
            return
        os.makedirs(place.location, exist_ok=True)
        unfinished = place.file(f"{name}.{uuid.uuid4().hex[:8]}.tmp")
        try:
            with open(unfinished, "wb") as file:
                for part in limited:
                    file.write(part)
            os.rename(unfinished, place.file(name))
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(unfinished)
            raise


@contextmanager
def read(place: Place, name: str) -> Iterator[Any]:
    """A file to read from; raises FileNotFoundError."""
    with files.storage(place):
        if place.is_local:
            with open(place.file(name), "rb") as file:
                yield file
        else:
            yield obstore.open_reader(place.store, f"{place.key}/{name}", buffer_size=PART_BYTES)


def sweep(place: Place, before_millis: int) -> int:
    """Remove files that nobody came for; returns how many."""
    old = [
        entry.name
        for entry in files.list_folder(place, "")
        if entry.modified_millis < before_millis
    ]
    for name in old:
        files.remove(place, name)
    return len(old)


def _read(source: Readable) -> Iterator[bytes]:
    while part := source.read(PART_BYTES):
        yield part if isinstance(part, bytes) else bytes(part)


def _limit(parts: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for part in parts:
        size += len(part)
        if size > max_bytes:
            raise InvalidRequest(
                f"the result has more than {max_bytes} bytes", detail="select less, or add LIMIT"
            )
        yield part
