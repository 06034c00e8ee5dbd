"""Metadata files of Iceberg tables: planned, written before the record is swapped, read, removed.

A file whose swap was refused is removed; one whose swap may have happened is kept.
"""

import contextlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.iceberg_tables import iceberg_tables
from penstock.catalog.iceberg_tables.iceberg_tables import IcebergTable
from penstock.catalog.iceberg_views.metadata_files import (
    missing_file,
    plain,
    remove_file,
    split_location,
    write_file,
)
from penstock.database.interface import P, T, Work
from penstock.errors import (
    DamagedFile,
    FileNotFound,
    InvalidTable,
    OutcomeUnknown,
    PenstockError,
    Unavailable,
)
from penstock.iceberg.doors import table_places, table_register
from penstock.iceberg.files import MAX_BYTES, METADATA_PATH
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake, Place

Json = dict[str, Any]

# How often a document is looked for again when a commit replaced and removed it meanwhile.
READS = 5
MEND = "bring the file back, or register an older one with overwrite"


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A metadata file before it is written; `text` is the document as JSON."""

    document: Json
    text: bytes
    path: str
    content: bytes
    target: Place
    # Where the table is, as the lake spells it.
    location: str


def plan(lake: Lake, document: Json, previous: str | None) -> PlannedFile:
    """Decide where the next file of a table goes; writes nothing. Blocks."""
    location = lake.accept(plain(document["location"]))
    properties = document.get("properties") or {}
    path = table_places.next_metadata_path(
        document["location"], properties, previous, str(uuid.uuid4())
    )
    what = METADATA_PATH if properties.get(METADATA_PATH) else "location"
    folder = lake.accept(plain(path.rpartition("/")[0], what), what)
    return PlannedFile(
        document,
        msgspec.json.encode(document),
        path,
        table_places.encode(document, path),
        lake.place(folder),
        location,
    )


def write(planned: PlannedFile) -> None:
    """Write a planned file, durably; blocks."""
    write_file(planned.target, planned.path, planned.content)


def read_registered(lake: Lake, location: str) -> tuple[Json, str]:
    """A metadata file that someone else wrote, checked, and its folder; blocks."""
    folder, name = split_location(lake, location)
    raw = _read(lake.place(folder), name, location)
    # Tables of version 1 may have no uuid of their own.
    document = table_register.read(raw, location, uuid=str(uuid.uuid4()))
    lake.accept(plain(document["location"]))
    return document, folder


async def load(catalog: Catalog, table: IcebergTable) -> tuple[IcebergTable, bytes]:
    """The table's metadata as JSON, with the record that it belongs to."""
    for _ in range(READS):
        try:
            check_there(catalog.lake, table)
            text = catalog.documents.find(table.state)
            if text is None:
                text = await catalog.lake.run(_read_own, catalog.lake, table)
        except (DamagedFile, FileNotFound):
            # It may have been replaced, and then removed, since the record was read.
            now = await iceberg_tables.get(catalog.database, table.identifier)
            if now.state == table.state:
                raise
            table = now
        else:
            return table, catalog.documents.keep(table.state, text)
    raise Unavailable(
        f"the metadata of {'.'.join(table.identifier)} changes too fast", detail="retry"
    )


def check_there(lake: Lake, table: IcebergTable) -> None:
    """Refuse a table whose metadata file was taken away, as far as that can be seen at once.

    A store would have to be asked each time; there, the next server that reads the file notices.
    """
    place = lake.place(table.metadata_folder)
    if place.is_local and not files.exists(place, table.metadata_location.rpartition("/")[2]):
        raise _gone(table)


def _gone(table: IcebergTable) -> FileNotFound:
    # The words that clients know from engines.
    return FileNotFound(
        f"Failed to open input stream for file: {table.metadata_location}", detail=MEND
    )


def _read_own(lake: Lake, table: IcebergTable) -> bytes:
    try:
        document = _read_checked(lake, table.metadata_folder, table.metadata_location, table.uuid)
        _check_own(lake, table, document)
        return msgspec.json.encode(document)
    except Unavailable:
        raise
    except FileNotFound as error:
        raise _gone(table) from error
    except PenstockError as error:
        raise DamagedFile(
            f"the metadata of table {'.'.join(table.identifier)} cannot be read: {error.message}",
            detail=MEND,
        ) from error


def _check_own(lake: Lake, table: IcebergTable, document: Json) -> None:
    """Refuse a file that came to say another table, or another place, than the record."""
    if document["table-uuid"].lower() != table.uuid.lower():
        raise InvalidTable(f"it is that of another table, {document['table-uuid']}")
    if lake.accept(plain(document["location"])) != table.location:
        raise InvalidTable(f"it says that the table is at {document['location']!r}")


def read_text(lake: Lake, folder: str, location: str, table_uuid: str) -> bytes:
    """The document of a file in this folder, as JSON, checked as when it came; blocks."""
    # Who may write a table's rows may write into its folder, so its own files are checked as well.
    return msgspec.json.encode(_read_checked(lake, folder, location, table_uuid))


def _read_checked(lake: Lake, folder: str, location: str, table_uuid: str) -> Json:
    raw = _read(lake.place(folder), location.rpartition("/")[2], location)
    return table_register.read(raw, location, uuid=table_uuid)


def _read(place: Place, name: str, location: str) -> bytes:
    try:
        if (size := files.get_size(place, name)) > MAX_BYTES:
            raise InvalidTable(f"{location} has {size} bytes, which no metadata has")
        return files.read(place, name)
    except FileNotFoundError as error:
        raise missing_file(location) from error


def remove(lake: Lake, table: IcebergTable, locations: Sequence[str]) -> None:
    """Remove older metadata files, as far as they are in the table's own folders; blocks."""
    for location in locations:
        with contextlib.suppress(PenstockError):
            folder, _ = split_location(lake, location)
            if table.holds(folder):
                remove_file(lake, location)


async def publish(
    catalog: Catalog,
    tables: Sequence[tuple[str, str | None, str]],
    work: Work[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T | None:
    """Swap the records of tables for written files; removes these when that is refused.

    Each table is its id, the metadata file that it had, and its new one. Returns None when the swap
    is known to have happened although its answer was lost.
    """
    try:
        return await catalog.database.write(work, *args, **kwargs)
    except Unavailable as error:
        # All records are swapped in one transaction, so that one of them tells.
        id, base, new = tables[0]
        found = await _find_location(catalog, id)
        if found == new:
            return None
        # SQLite has no commits in flight; with other databases nobody can tell.
        if found == base and catalog.database.kind == "sqlite":
            raise
        raise _unknown() from error
    except PenstockError:
        await abandon(catalog, [new for _, _, new in tables])
        raise


async def abandon(catalog: Catalog, locations: Sequence[str]) -> None:
    """Remove files that no record came to name."""
    for location in locations:
        await catalog.lake.run(remove_file, catalog.lake, location)


async def _find_location(catalog: Catalog, id: str) -> str | None:
    """Where a table's record points now; raises OutcomeUnknown when it cannot be read either."""
    try:
        row = await catalog.database.fetch_one(
            "SELECT metadata_location FROM iceberg_tables WHERE id = $1", id
        )
    except Unavailable as error:
        raise _unknown() from error
    return None if row is None else str(row[0])


def _unknown() -> OutcomeUnknown:
    return OutcomeUnknown(
        "the database failed while the table was committed; it may or may not have changed",
        detail="load the table to see, or repeat the request",
    )
