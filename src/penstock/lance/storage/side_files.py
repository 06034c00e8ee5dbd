"""Small files that Penstock keeps beside a table, below `_jobs`. Everything here blocks."""

import contextlib
import os
import uuid
from typing import Any

import obstore

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place

FOLDER = "_jobs"


def write_file(place: Place, path: str, content: Any) -> None:
    """Write a file that nobody ever sees half-written."""
    if not place.is_local:
        # It does not accept Arrow buffers.
        whole = content if isinstance(content, bytes) else bytes(memoryview(content))
        obstore.put(place.store, f"{place.key}/{path}", whole)
        return
    final = place.file(path)
    _make_folder(os.path.dirname(final))
    unfinished = f"{final}.{uuid.uuid4().hex[:8]}.tmp"
    with open(unfinished, "wb") as file:
        file.write(content)
    os.rename(unfinished, final)


def _make_folder(path: str) -> None:
    """Create a folder with its parents, which a job that ends may just be removing."""
    while not os.path.isdir(path):
        with contextlib.suppress(FileNotFoundError):
            os.makedirs(path, exist_ok=True)


def list_names(place: Place, folder: str) -> list[str]:
    """The names of a folder's files; a missing folder is empty."""
    # Called many times a second: listing through the store costs ten times as much.
    if place.is_local:
        with contextlib.suppress(FileNotFoundError):
            return os.listdir(place.file(folder))
        return []
    return [entry.name for entry in files.list_folder(place, folder)]
