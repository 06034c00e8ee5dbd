"""A backup as a folder: the catalog's rows, the lake's files, and `backup.json`.

`backup.json` is written last: a folder without it is an interrupted backup.
"""

import msgspec

from penstock.backups import dump
from penstock.backups.dump import Dump
from penstock.errors import InvalidRequest
from penstock.lance.copies import transfer
from penstock.lance.copies.checking import Folder
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake, Place
from penstock.model.locations import join

PAGE, CATALOG, LAKE = "backup.json", "catalog", "lake"
FORMAT = 1


class SkippedVersion(msgspec.Struct, frozen=True):
    """A version that could not be read when the backup was made, and so is not in it."""

    table: str
    branch: str
    version: int
    why: str
    is_newest: bool = False


class CopiedTable(msgspec.Struct, frozen=True):
    """A table in a backup: its folder in `lake`, and where it was."""

    id: str
    name: str
    path: str
    was: str
    files: int = 0
    bytes: int = 0


class LeftOutTable(msgspec.Struct, frozen=True):
    """An Iceberg table, which no backup has, and the metadata file that it can be registered by."""

    name: str
    metadata_location: str


class BackupInfo(msgspec.Struct, frozen=True):
    """What `backup.json` says about its backup."""

    format: int
    penstock: str
    schema: int
    catalog: str
    root: str
    database: str
    at_millis: int
    rows: dict[str, int]
    pieces: list[str]
    tables: list[CopiedTable]
    left_out: list[SkippedVersion] = []
    iceberg_tables: list[LeftOutTable] = []

    @property
    def bytes(self) -> int:
        return sum(table.bytes for table in self.tables)

    @property
    def files(self) -> int:
        return sum(table.files for table in self.tables)


def place_of(lake: Lake, *steps: str) -> Place:
    """Open a folder of the backup as a lake."""
    location = lake.root
    for step in steps:
        location = join(location, step)
    return lake.place(location)


def folder_of(lake: Lake, place: Place, was: str = "") -> Folder:
    """A table's folder, with the options that Lance needs to open it."""
    return Folder(place, {} if place.is_local else lake.options, was)


def write_rows(lake: Lake, rows: Dump) -> list[str]:
    """Write the catalog's rows; returns the names of their pieces."""
    place, names = place_of(lake, CATALOG), []
    for name, piece in dump.encode(rows.values()):
        transfer.write(place, name, piece)
        names.append(name)
    return names


def write_info(lake: Lake, page: BackupInfo) -> None:
    """Write `backup.json` when everything else is on disk: the backup is complete."""
    place = place_of(lake)
    transfer.make_names_durable(place)
    transfer.write(place, PAGE, msgspec.json.format(msgspec.json.encode(page)))
    transfer.make_names_durable(place)


def read_info(lake: Lake) -> BackupInfo:
    """Read `backup.json`."""
    try:
        raw = files.read(place_of(lake), PAGE)
    except FileNotFoundError as error:
        raise InvalidRequest(
            f"{lake.root} holds no whole backup: it has no {PAGE}",
            detail="name the folder that 'penstock backup' wrote, and let that finish",
        ) from error
    try:
        page = msgspec.json.decode(raw, type=BackupInfo)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(
            f"{lake.root}/{PAGE} is damaged: {error}", detail="use another backup"
        ) from error
    if page.format != FORMAT:
        raise InvalidRequest(
            f"the backup has format {page.format}, this release reads {FORMAT}",
            detail="restore it with the release that made it",
        )
    return page


def read_rows(lake: Lake, page: BackupInfo) -> Dump:
    """Read the catalog's rows; raises when a piece is missing."""
    place = place_of(lake, CATALOG)
    try:
        rows = dump.decode(files.read(place, name) for name in page.pieces)
    except (FileNotFoundError, msgspec.MsgspecError, ValueError, IndexError) as error:
        raise InvalidRequest(
            f"the rows in {place.location} are damaged: {error}", detail="use another backup"
        ) from error
    counts = {name: len(relation.rows) for name, relation in rows.items()}
    if counts != {name: count for name, count in page.rows.items() if count}:
        raise InvalidRequest(
            f"{place.location} does not hold as many rows as {PAGE} says",
            detail="use another backup",
        )
    return rows
