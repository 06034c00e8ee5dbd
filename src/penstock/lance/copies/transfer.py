"""Copy files of a folder to another place: local folders and stores alike. Everything blocks."""

import contextlib
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

import obstore

from penstock.lance.storage.files import storage, sync
from penstock.lance.storage.lake import Place
from penstock.model.locations import store_of

# How much is read from a store before it is written to another.
CHUNK_BYTES = 8 * 1024 * 1024
# S3 copies nothing larger by itself.
MAX_COPIED_BYTES = 5_000_000_000


@dataclass(frozen=True, slots=True)
class File:
    """A file of a folder, by its path below it."""

    path: str
    size: int


def list_files(place: Place) -> list[File]:
    """Every file below a place; none when there is no such folder."""
    if place.is_local:
        return sorted(_walk(place.location), key=lambda file: file.path)
    start = len(place.key) + 1 if place.key else 0
    with storage(place):
        return sorted(
            (
                File(meta["path"][start:], meta["size"])
                for page in obstore.list(place.store, f"{place.key}/" if place.key else None)
                for meta in page
            ),
            key=lambda file: file.path,
        )


def is_empty(place: Place) -> bool:
    """Whether a place has no files."""
    if place.is_local:
        return not os.path.isdir(place.location) or not os.listdir(place.location)
    with storage(place):
        prefix = f"{place.key}/" if place.key else None
        return not any(page for page in obstore.list(place.store, prefix, chunk_size=1))


def copy(source: Place, path: str, target: Place, to: str = "") -> int:
    """Copy a file; returns its size, or raises FileNotFoundError when it is gone.

    A local copy gets its name only once it is complete and on disk.
    """
    to = to or path
    with storage(source), contextlib.ExitStack() as stack:
        if source.is_local:
            opened = stack.enter_context(open(source.file(path), "rb"))
            size = os.fstat(opened.fileno()).st_size
            if not target.is_local:
                obstore.put(target.store, _key(target, to), opened, chunk_size=CHUNK_BYTES)
                return size
            with _new_file(target.file(to)) as file:
                shutil.copyfileobj(opened, file, CHUNK_BYTES)
            return size
        if not target.is_local:
            size = obstore.head(source.store, _key(source, path))["size"]
            _copy_between(source, path, target, to, size)
            return size
        found = obstore.get(source.store, _key(source, path))
        with _new_file(target.file(to)) as file:
            for chunk in found.stream(CHUNK_BYTES):
                file.write(chunk)
        return found.meta["size"]


def _copy_between(source: Place, path: str, target: Place, to: str, size: int) -> None:
    """Copy an object: within a store by the store itself, else through memory or a local file."""
    if store_of(source.location) == store_of(target.location) and size < MAX_COPIED_BYTES:
        obstore.copy(source.store, _key(source, path), _key(target, to))
        return
    with tempfile.SpooledTemporaryFile(max_size=CHUNK_BYTES) as spool:
        for chunk in obstore.get(source.store, _key(source, path)).stream(CHUNK_BYTES):
            spool.write(chunk)
        spool.seek(0)
        obstore.put(target.store, _key(target, to), spool, chunk_size=CHUNK_BYTES)


def write(target: Place, path: str, content: bytes) -> None:
    """Write a whole file, replacing any of that name."""
    with storage(target):
        if not target.is_local:
            obstore.put(target.store, _key(target, path), content)
            return
        with _new_file(target.file(path)) as file:
            file.write(content)


def make_names_durable(place: Place) -> None:
    """Sync the names of all files of a local folder to disk."""
    if not place.is_local:
        return
    for folder, _, _ in os.walk(place.location):
        sync(folder)
    sync(os.path.dirname(place.location))


def read_ends(place: Place, paths: Iterable[str], count: int) -> dict[str, bytes]:
    """The last bytes of files, by path; omits those that cannot be read."""
    found: dict[str, bytes] = {}
    for path in paths:
        with contextlib.suppress(FileNotFoundError), storage(place):
            if place.is_local:
                with open(place.file(path), "rb", buffering=0) as file:
                    size = os.fstat(file.fileno()).st_size
                    file.seek(max(0, size - count))
                    found[path] = file.read(count)
                continue
            size = obstore.head(place.store, _key(place, path))["size"]
            start = max(0, size - count)
            found[path] = bytes(
                obstore.get_range(place.store, _key(place, path), start=start, end=size)
                if size
                else b""
            )
    return found


def _walk(top: str) -> Iterable[File]:
    for folder, _, names in os.walk(top):
        for name in names:
            whole = os.path.join(folder, name)
            # A file removed during the listing counts as missing.
            with contextlib.suppress(FileNotFoundError):
                yield File(os.path.relpath(whole, top), os.lstat(whole).st_size)


def _key(place: Place, path: str) -> str:
    return f"{place.key}/{path}" if place.key else path


@contextlib.contextmanager
def _new_file(path: str) -> Iterator[IO[bytes]]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    aside = f"{path}.tmp-{uuid.uuid4().hex[:12]}"
    try:
        with open(aside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise
