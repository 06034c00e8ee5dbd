"""What is kept for a view: beside it, and as tags of its sources and its own. All of it blocks.

A tag keeps a version from being cleaned up, because the next refresh compares with it.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import msgspec

from penstock.errors import InvalidTableState
from penstock.jobs.engine.worker_notes import write_first, write_note
from penstock.lance import refs
from penstock.lance.diff.row_sets import RowSet, decode_row_set, make_row_set
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER as JOBS
from penstock.lance.storage.side_files import list_names

if TYPE_CHECKING:
    from lance import LanceDataset

FOLDER = "_refresh"
# The versions of a view's own sources, and those of all tables that a cascade of views begins at.
PINS, FIRST_PINS = "pinned.json", "first.json"
VIEW_TAGS = f"{refs.OUR_TAGS}view-"
KEY = "works-as-"
ID_CHARACTERS = 16


class Pin(msgspec.Struct, frozen=True):
    """A version of a source, and the transaction that made it."""

    version: int
    transaction: str


def find_pins(place: Place, job: str, name: str = PINS) -> dict[str, Pin] | None:
    """The versions that an earlier attempt of the job chose."""
    try:
        content = files.read(place, f"{JOBS}/{job}/{name}")
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=dict[str, Pin])


def write_pins(place: Place, job: str, pins: Mapping[str, Pin], name: str = PINS) -> bool:
    """Note the versions of a job, once for all its attempts; False when another has noted others.

    What attempts leave for each other does not say which versions it was computed for.
    """
    if write_first(place, job, name, dict(pins)):
        return True
    return find_pins(place, job, name) == pins


def write_key(place: Place, job: str, key: str) -> None:
    """Note a name under which a job works in a view's folder."""
    write_note(place, job, f"{KEY}{key}", None)


def list_keys(place: Place, job: str) -> list[str]:
    """The names under which a job worked in a view's folder, beside its own."""
    names = list_names(place, f"{JOBS}/{job}")
    return [name.removeprefix(KEY) for name in names if name.startswith(KEY)]


def keep_version(dataset: "LanceDataset", view: str, version: int) -> None:
    """Have a version of a source, or of the view itself, stay for a view."""
    refs.hold_version(dataset, tag_of(view, version), "", version)


def prefix_of(view: str) -> str:
    """How the tags begin that keep versions for a view."""
    plain = "".join(filter(str.isalnum, view))[:ID_CHARACTERS]
    return f"{VIEW_TAGS}{plain}-"


def tag_of(view: str, version: int) -> str:
    """What keeps a version for a view."""
    return f"{prefix_of(view)}{version}"


def list_tags(source: Place, view: str | None = None) -> set[str]:
    """The tags that keep versions of a source for a view, or for any."""
    start = VIEW_TAGS if view is None else prefix_of(view)
    return {name for name in refs.list_names(source, refs.TAGS) if name.startswith(start)}


def remove_tags(source: Place, names: Collection[str]) -> None:
    """Let go of versions."""
    for name in names:
        refs.delete_tag(source, name)


def write_failed(place: Place, name: str, rows: RowSet | None) -> str | None:
    """Store which rows a function failed on; None when there are none."""
    if rows is None or not len(rows):
        return None
    files.write_new(place, f"{FOLDER}/{name}", rows.encode())
    return name


def read_failed(place: Place, name: str | None, count: int) -> RowSet:
    """The rows that the last refresh failed on."""
    rows = make_row_set([])
    if name is not None:
        try:
            rows = decode_row_set(files.read(place, f"{FOLDER}/{name}"))
        except FileNotFoundError:
            raise InvalidTableState(f"the list of failed rows {name} is gone") from None
        except InvalidTableState as error:
            raise InvalidTableState(f"the list of failed rows {name}: {error.message}") from error
    if len(rows) != count:
        raise InvalidTableState(f"the list of failed rows {name} is not whole")
    return rows


def list_failed(place: Place) -> set[str]:
    """The names of all lists of failed rows."""
    return {entry.name for entry in files.list_folder(place, FOLDER)}


def remove_failed(place: Place, names: Collection[str]) -> None:
    """Remove lists of failed rows."""
    for name in names:
        files.remove(place, f"{FOLDER}/{name}")
