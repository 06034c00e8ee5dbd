"""The file at a lake's root that names the lake's catalog; everything here blocks."""

import re
import uuid

import msgspec
import obstore

from penstock.errors import Unavailable
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place

MARKER = "_penstock.json"
ABOUT = "This folder belongs to a Penstock catalog; keep this file with it."
# The folders that a catalog creates have distinctive names.
_OURS = re.compile(r"-[0-9a-f]{16}\.(lance|view|iceberg)")


class Marker(msgspec.Struct):
    """What the file contains."""

    catalog: str
    about: str = ABOUT


def read_marker(place: Place) -> str:
    """The id of the catalog that a root belongs to; empty when there is none."""
    try:
        return msgspec.json.decode(files.read(place, MARKER), type=Marker).catalog
    except FileNotFoundError:
        return ""
    except msgspec.MsgspecError as error:
        raise Unavailable(
            f"the file {place.location}/{MARKER} is damaged: {error}",
            detail="restore it from a backup; or remove it, if this is the lake's own catalog, "
            "which then writes it again",
        ) from error


def write_marker(place: Place, catalog: str, *, replaces: bool = False) -> None:
    """Mark a root as a catalog's; a root of another catalog stays as it is."""
    content = msgspec.json.format(msgspec.json.encode(Marker(catalog)))
    if replaces:
        files.remove(place, MARKER)
    # In two steps, so that nobody reads half of it.
    staged = f"{MARKER}-{uuid.uuid4().hex}"
    if place.is_local:
        files.write_new(place, staged, content)
    files.publish(place, staged, MARKER, content)
    if place.is_local:
        files.remove(place, staged)


def holds_tables(place: Place) -> bool:
    """Whether a catalog has created folders of tables or views at a root."""
    with files.storage(place):
        found = obstore.list_with_delimiter(place.store, place.key or None)
    return any(_OURS.search(folder) for folder in found["common_prefixes"])
