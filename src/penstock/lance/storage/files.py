"""File operations on a table's folder; all of them block.

`publish` decides races between writers: it gives a file its final name only if nothing has that
name. `make_durable` syncs local files, so that they survive a power cut.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from penstock.errors import InvalidRequest, Unavailable
from penstock.lance.storage.lake import Place
from penstock.model.locations import check_steps

# Errors of a path other than that it does not exist.
NO_SUCH_FILE = (errno.ENOTDIR, errno.ENAMETOOLONG, errno.EISDIR, errno.ELOOP)


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a folder."""

    name: str
    size: int
    modified_millis: int
    e_tag: str | None


def read_end(place: Place, path: str, size: int, count: int) -> bytes:
    """The last bytes of a file of known size."""
    start = max(0, size - count)
    with storage(place):
        if place.is_local:
            with open(place.file(path), "rb", buffering=0) as file:
                file.seek(start)
                return file.read(count)
        found = obstore.get_range(place.store, f"{place.key}/{path}", start=start, end=size)
        return bytes(found)


def read(place: Place, path: str) -> bytes:
    """The file's content; raises FileNotFoundError when there is none."""
    with storage(place):
        if place.is_local:
            return _read_local(place.file(path))
        return bytes(obstore.get(place.store, f"{place.key}/{path}").bytes())


def get_size(place: Place, path: str) -> int:
    """The file's size; raises FileNotFoundError when there is none."""
    with storage(place):
        if place.is_local:
            found = os.stat(place.file(path))
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(place.file(path))
            return found.st_size
        return obstore.head(place.store, f"{place.key}/{path}")["size"]


def exists(place: Place, path: str) -> bool:
    if place.is_local:
        return os.path.isfile(place.file(path))
    with storage(place):
        try:
            obstore.head(place.store, f"{place.key}/{path}")
        except (FileNotFoundError, NotFoundError):
            return False
        return True


def list_folder(place: Place, folder: str) -> list[FileEntry]:
    """The files of one folder, sorted by name; a missing folder is empty."""
    prefix = f"{place.key}/{folder}"
    if place.is_local and not os.path.isdir(place.file(folder)):
        return []
    with storage(place):
        found = obstore.list_with_delimiter(place.store, prefix)["objects"]
    return sorted(
        (
            FileEntry(
                meta["path"].rpartition("/")[2],
                meta["size"],
                int(meta["last_modified"].timestamp() * 1000),
                meta["e_tag"],
            )
            for meta in found
        ),
        key=lambda entry: entry.name,
    )


def publish(place: Place, staged: str, final: str, content: bytes) -> bool:
    """Give the staged file its final name; False, and nothing changed, when that name is taken."""
    with storage(place):
        if place.is_local:
            # A hard link keeps inode and time, and so the e_tag that the writer computed.
            try:
                _link(place.file(staged), place.file(final))
            except FileExistsError:
                return False
        else:
            try:
                obstore.put(place.store, f"{place.key}/{final}", content, mode="create")
            except AlreadyExistsError:
                return False
    return True


def list_below(place: Place, folder: str) -> list[tuple[str, int]]:
    """The path (relative to the table) and time of every file in a folder and its subfolders."""
    start = len(place.key) + 1
    if place.is_local and not os.path.isdir(place.file(folder)):
        return []
    with storage(place):
        return [
            (meta["path"][start:], int(meta["last_modified"].timestamp() * 1000))
            for page in obstore.list(place.store, f"{place.key}/{folder}/")
            for meta in page
        ]


def list_subfolders(place: Place, folder: str) -> list[tuple[str, int]]:
    """The path and time of every local subfolder; object stores have none."""
    if not place.is_local:
        return []
    with contextlib.suppress(FileNotFoundError), os.scandir(place.file(folder)) as found:
        return [
            (f"{folder}/{entry.name}/", int(entry.stat().st_mtime * 1000))
            for entry in found
            if entry.is_dir()
        ]
    return []


def walk(place: Place) -> Iterator[str]:
    """Yield the path of every file below the location, relative to it, as they are found."""
    if place.is_local:
        for folder, _, names in os.walk(place.location):
            yield from (os.path.relpath(f"{folder}/{name}", place.location) for name in names)
        return
    with storage(place):
        for page in obstore.list(place.store, f"{place.key}/"):
            yield from (meta["path"][len(place.key) + 1 :] for meta in page)


def is_missing(place: Place) -> bool:
    """Whether a local table has no folder at all; object stores have no folders."""
    return place.is_local and not os.path.isdir(place.location)


def write_new(place: Place, path: str, content: bytes) -> None:
    """Write a file under a unique name, durably."""
    with storage(place):
        if not place.is_local:
            obstore.put(place.store, f"{place.key}/{path}", content)
            return
        folder = os.path.dirname(place.file(path))
        touched = [folder]
        while not os.path.isdir(touched[-1]):
            touched.append(os.path.dirname(touched[-1]))
        _make_folder(folder)
        with open(place.file(path), "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        for each in touched:
            sync(each)


def make_durable(place: Place, path: str, *, with_parents: bool = False) -> None:
    """Sync a local file and its name to disk; object stores have done so already.

    With `parents`, also the folders above it, up to the one that contains the table.
    """
    if not place.is_local:
        return
    folder = path.rpartition("/")[0]
    sync(place.file(path))
    sync(place.file(folder))
    parent = folder
    while with_parents and parent:
        parent = parent.rpartition("/")[0]
        sync(place.file(parent) if parent else place.location)
    if with_parents:
        sync(os.path.dirname(place.location))


def move(place: Place, path: str, to: str) -> None:
    """Rename a file inside the table; creates the target folder when missing."""
    with storage(place):
        if place.is_local:
            os.makedirs(os.path.dirname(place.file(to)), exist_ok=True)
            os.rename(place.file(path), place.file(to))
            return
        obstore.rename(place.store, f"{place.key}/{path}", f"{place.key}/{to}")


def remove(place: Place, path: str) -> None:
    """Remove a file; ignores a missing one."""
    with storage(place):
        if place.is_local:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place.file(path))
            return
        try:
            obstore.delete(place.store, f"{place.key}/{path}")
        except (FileNotFoundError, NotFoundError):
            return


def remove_all(place: Place) -> None:
    """Remove everything below the table's location."""
    with storage(place):
        if place.is_local:
            while os.path.isdir(place.location):
                # A writer that does not know of the drop may still be moving its files.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(place.location)
            return
        for page in obstore.list(place.store, f"{place.key}/"):
            obstore.delete(place.store, [meta["path"] for meta in page])


def remove_if_empty(place: Place, folder: str) -> None:
    """Remove an empty local folder; object stores have no folders."""
    if place.is_local:
        with contextlib.suppress(OSError):
            os.rmdir(place.file(folder))


def check_root(place: Place) -> None:
    """Raise when a root of the lake cannot be used; creates a missing local folder."""
    with storage(place):
        if not place.is_local:
            next(iter(obstore.list(place.store, place.key or None, chunk_size=1)), None)
            return
        os.makedirs(place.location, exist_ok=True)
        if not os.access(place.location, os.W_OK | os.X_OK):
            raise PermissionError(f"{place.location} is not writable")


def relative_path(place: Place, path: str) -> str:
    """A client's path relative to the table; refuses one outside the table."""
    if not path or not path.isprintable():
        raise InvalidRequest(
            "manifest_path is empty or holds control characters",
            detail="send the path of the manifest that was staged",
        )
    relative = check_steps(_below(place, path), "manifest_path")
    if place.is_local and _has_link(place, relative.split("/")):
        raise _outside(place, path)
    return relative


def _below(place: Place, path: str) -> str:
    # The SDK sends the key; people spell out the other forms.
    if path.startswith(f"{place.key}/"):
        return path[len(place.key) + 1 :]
    for prefix in (f"{place.location}/", f"{place.uri}/"):
        if path.startswith(prefix):
            return path[len(prefix) :]
    if path.startswith("/") or "://" in path or path.split("/")[0] not in ("_versions", "tree"):
        raise _outside(place, path)
    return path


def _has_link(place: Place, parts: list[str]) -> bool:
    """Whether the path from the table's folder to the file contains a symbolic link."""
    steps = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]
    return any(os.path.islink(place.file(step)) for step in steps)


def _outside(place: Place, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"manifest_path {path!r} is not under the table's location {place.location!r}",
        detail="stage the manifest in the table's own folder",
    )


def _read_local(path: str) -> bytes:
    # Anything but a plain file (a folder, a pipe) counts as missing.
    if not os.path.isfile(path):
        raise FileNotFoundError(path)
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _link(staged: str, final: str) -> None:
    try:
        os.link(staged, final)
    except FileNotFoundError:
        if not os.path.isfile(staged):
            raise
        os.makedirs(os.path.dirname(final), exist_ok=True)
        os.link(staged, final)


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:
        if os.path.exists(folder):
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a file") from error
        # It was there a moment ago, and was removed before it could be examined.
        raise FileNotFoundError(errno.ENOENT, str(error)) from error


def sync(path: str) -> None:
    """Make the content of a local file or folder durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def storage(place: Place) -> Iterator[None]:
    """Turn a failing store into one error that says so; a missing file keeps its own error."""
    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(str(error).splitlines()[0]) from error
    except FileNotFoundError:
        raise
    except (BaseError, OSError) as error:
        if isinstance(error, OSError) and error.errno in NO_SUCH_FILE:
            raise FileNotFoundError(error.errno, str(error)) from error
        raise Unavailable(
            f"storage at {place.location} failed: {str(error).splitlines()[0]}",
            detail="check that the store can be reached and written by the server",
        ) from error
