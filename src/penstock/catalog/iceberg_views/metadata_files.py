"""Metadata files of Iceberg views: written before the record is swapped, and never changed.

A file whose swap was refused is removed; one whose swap may have happened is kept.
"""

import contextlib
import errno
import uuid
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.database.interface import P, T, Transaction, Work
from penstock.errors import (
    ConcurrentCommit,
    FileNotFound,
    InvalidRequest,
    InvalidView,
    OutcomeUnknown,
    PenstockError,
    Unavailable,
)
from penstock.iceberg.doors import register
from penstock.iceberg.files import (
    MAX_BYTES,
    METADATA_PATH,
    decode_metadata,
    encode_metadata,
    next_metadata_path,
)
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake, Place
from penstock.model.locations import spell_out


@dataclass(frozen=True, slots=True)
class MetadataDocument:
    """A metadata document: where its file is, its content, and the file's folder in the lake."""

    location: str
    text: str
    folder: str


class PublishableView(Protocol):
    """A view whose new document can be published."""

    @property
    def id(self) -> str: ...

    @property
    def document(self) -> MetadataDocument: ...


@dataclass(frozen=True, slots=True)
class DocumentPlan:
    """A document before it is written: its path, its public location, and its folder."""

    metadata: dict[str, Any]
    path: str
    target: Place


def plan(lake: Lake, metadata: dict[str, Any], previous: str | None) -> DocumentPlan:
    """Decide where the next file of a document goes; writes nothing."""
    lake.accept(plain(metadata["location"]))
    properties = metadata.get("properties", {})
    path = next_metadata_path(metadata["location"], properties, previous, str(uuid.uuid4()))
    what = METADATA_PATH if properties.get(METADATA_PATH) else "location"
    folder = lake.accept(plain(path.rpartition("/")[0], what), what)
    return DocumentPlan(metadata, path, lake.place(folder))


def write(planned: DocumentPlan) -> MetadataDocument:
    """Write a document to its file; blocks."""
    path, target = planned.path, planned.target
    write_file(target, path, encode_metadata(planned.metadata, path))
    return MetadataDocument(path, msgspec.json.encode(planned.metadata).decode(), target.location)


def write_file(target: Place, path: str, content: bytes) -> None:
    """Write a metadata file into its folder, durably; blocks."""
    folder, _, name = path.rpartition("/")
    try:
        files.write_new(target, name, content)
    except FileNotFoundError as error:
        if error.errno == errno.ENOENT:
            raise ConcurrentCommit(
                f"the folder {folder!r} is being removed", detail="retry in a moment"
            ) from error
        raise InvalidRequest(
            f"no folder can be made at {folder!r}", detail="choose another location"
        ) from error


def read_document(lake: Lake, location: str) -> MetadataDocument:
    """Read a document that someone else wrote; blocks."""
    folder, name = split_location(lake, location)
    place = lake.place(folder)
    try:
        if (size := files.get_size(place, name)) > MAX_BYTES:
            raise InvalidView(f"{location} has {size} bytes, which no metadata has")
        raw = files.read(place, name)
    except FileNotFoundError as error:
        raise missing_file(location) from error
    metadata = register.check_metadata(decode_metadata(raw, location))
    lake.accept(plain(metadata["location"]))
    return MetadataDocument(location, msgspec.json.encode(metadata).decode(), place.location)


def split_location(lake: Lake, location: str) -> tuple[str, str]:
    """The folder of a file that a client names, as the lake spells it, and the file's name."""
    # Accept the whole location, so that a link cannot lead out of the lake or to another's file.
    what = "metadata-location"
    folder, _, name = lake.accept(plain(location, what), what).rpartition("/")
    if location.rpartition("/")[2] not in (name, "", "."):
        raise InvalidRequest(
            f"metadata-location {location!r} is a link", detail="name the file itself"
        )
    return folder, name


def missing_file(location: str) -> FileNotFound:
    return FileNotFound(
        f"the metadata file {location} does not exist", detail="check metadata-location"
    )


def remove_file(lake: Lake, location: str) -> None:
    """Try to remove a metadata file; blocks."""
    with contextlib.suppress(PenstockError, FileNotFoundError):
        folder, _, name = plain(location).rpartition("/")
        files.remove(lake.place(lake.accept(folder)), name)


async def publish(
    catalog: Catalog,
    view: PublishableView,
    base: str | None,
    work: Work[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T | None:
    """Swap `base` for a written document; removes its file when the swap is refused.

    Returns None when the swap is known to have happened although its answer was lost.
    """
    location = view.document.location
    try:
        return await catalog.database.write(work, *args, **kwargs)
    except Unavailable as error:
        found = await _find_location(catalog, view.id)
        if found == location:
            return None
        # SQLite has no commits in flight; with other databases nobody can tell.
        if found == base and catalog.database.kind == "sqlite":
            raise
        raise _unknown() from error
    except PenstockError:
        await catalog.lake.run(remove_file, catalog.lake, location)
        raise


def keeps_files(text: str) -> bool:
    """Whether a view's metadata says that its files outlive it."""
    metadata: dict[str, Any] = msgspec.json.decode(text)
    keeps: bool = metadata.get("properties", {}).get("gc.enabled", "true").lower() == "false"
    return keeps


def spell(folder: str) -> str:
    """The location of a folder in the lake, in a form that every reader takes literally."""
    is_plain = not folder.startswith("/") or any(character in folder for character in "?#%")
    return folder if is_plain else f"file://{folder}"


def plain(location: str, what: str = "location") -> str:
    """A location as the lake spells it: Java writes `file:/path`.

    Others must find the file by it, so it must be complete and every character literal.
    """
    spelt = spell_out(location, what)
    if spelt.is_relative:
        raise InvalidRequest(
            f"{what} {location!r} is neither a URI nor an absolute path", detail="write it out"
        )
    if spelt.store:
        return location
    if spelt.path not in location:
        raise InvalidRequest(
            f"{what} {location!r} holds %", detail="choose a path that need not be encoded"
        )
    return spelt.path


async def _find_location(catalog: Catalog, view_id: str) -> str | None:
    """Where the view's record points now; raises OutcomeUnknown when it cannot be read either."""
    try:
        return await catalog.database.read(_read_location, view_id)
    except Unavailable as error:
        raise _unknown() from error


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown(
        "the database failed while the view was committed; it may or may not have changed",
        detail="load the view to see, or repeat the request with its Idempotency-Key",
    )


async def _read_location(tx: Transaction, view_id: str) -> str | None:
    row = await tx.fetch_one("SELECT metadata_location FROM views WHERE id = $1", view_id)
    return None if row is None else row[0]
