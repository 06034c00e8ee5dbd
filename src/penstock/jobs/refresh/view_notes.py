"""What refreshes keep for a view: files beside it, and tags on its sources and itself. It blocks.

A tag protects a version from clean-up, because the next refresh compares with it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec
from lance import LanceDataset

from penstock.errors import InvalidTableState, PenstockError
from penstock.jobs.engine.worker_notes import WORKS_AS, write_first, write_note
from penstock.lance import refs
from penstock.lance.diff.row_sets import RowSet, decode_row_set, make_row_set
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER as JOBS
from penstock.lance.storage.side_files import list_names
from penstock.model.views import Watermark

FOLDER = "_refresh"
# The versions of a view's own sources, and those of a cascade's base tables.
PINS, FIRST_PINS = "pinned.json", "first.json"
VIEW_TAGS = f"{refs.OUR_TAGS}view-"
ID_CHARACTERS = 16


class Pin(msgspec.Struct, frozen=True):
    """A version of a source, and the transaction that made it."""

    version: int
    transaction: str
    # Of an Iceberg table, whose version is a snapshot and whose transaction its uuid: the metadata
    # file that is read.
    file: str = ""


class Pins(msgspec.Struct, frozen=True):
    """What the first attempt of a job chooses for all: sources' versions by id, and the moment."""

    versions: dict[str, Pin]
    # None when no query reads the clock.
    moment: int | None = None


def find_pins(place: Place, job: str, name: str = PINS) -> Pins | None:
    """What an earlier attempt of the job chose."""
    try:
        content = files.read(place, f"{JOBS}/{job}/{name}")
    except FileNotFoundError:
        return None
    return msgspec.json.decode(content, type=Pins)


def write_pins(place: Place, job: str, pins: Pins, name: str = PINS) -> bool:
    """Record a job's choice once for all attempts; False when another one recorded another.

    Files that attempts leave for each other do not say for which versions they were computed.
    """
    if write_first(place, job, name, pins):
        return True
    return find_pins(place, job, name) == pins


def write_key(place: Place, job: str, key: str) -> None:
    """Record a name under which a job works in a view's folder."""
    write_note(place, job, f"{WORKS_AS}{key}", None)


def list_keys(place: Place, job: str) -> list[str]:
    """The names under which a job worked in a view's folder, besides its own."""
    names = list_names(place, f"{JOBS}/{job}")
    return [name.removeprefix(WORKS_AS) for name in names if name.startswith(WORKS_AS)]


def keep_version(dataset: LanceDataset, view: str, version: int) -> None:
    """Protect a version of a source, or of the view itself, from clean-up."""
    refs.hold_version(dataset, tag_of(view, version), "", version)


def prefix_of(view: str) -> str:
    """The prefix of the tags that protect versions for a view."""
    plain = "".join(filter(str.isalnum, view))[:ID_CHARACTERS]
    return f"{VIEW_TAGS}{plain}-"


def tag_of(view: str, version: int) -> str:
    """The tag that protects a version for a view."""
    return f"{prefix_of(view)}{version}"


def list_tags(source: Place, view: str | None = None) -> set[str]:
    """The tags that protect versions of a source for a view, or for any."""
    start = VIEW_TAGS if view is None else prefix_of(view)
    return {name for name in refs.list_names(source, refs.TAGS) if name.startswith(start)}


def remove_tags(source: Place, names: Collection[str]) -> None:
    """Remove tags, so that their versions may be cleaned up."""
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


def write_partitions(place: Place, name: str, digests: Mapping[str, str]) -> str:
    """Store the digests of a view's partitions, by label."""
    files.write_new(place, f"{FOLDER}/{name}", msgspec.json.encode(digests))
    return name


def read_partitions(place: Place, name: str | None) -> dict[str, str]:
    """The digests of the partitions that the last refresh followed."""
    if name is None:
        return {}
    try:
        return msgspec.json.decode(files.read(place, f"{FOLDER}/{name}"), type=dict[str, str])
    except FileNotFoundError:
        raise InvalidTableState(f"the list of partitions {name} is gone") from None
    except msgspec.MsgspecError as error:
        raise InvalidTableState(f"the list of partitions {name} is damaged") from error


def list_failed(place: Place) -> set[str]:
    """The names of all lists of failed rows, and of partitions."""
    return {entry.name for entry in files.list_folder(place, FOLDER)}


def remove_failed(place: Place, names: Collection[str]) -> None:
    """Remove lists of failed rows."""
    for name in names:
        files.remove(place, f"{FOLDER}/{name}")


class Retention:
    """What was there when an attempt began.

    Nothing else is released: later files may belong to another attempt, which has the job now.
    """

    def __init__(self, view_id: str, view: Place, sources: Mapping[str, Place]) -> None:
        self._view_id = view_id
        self._view = view
        self._sources = sources
        self._lists = list_failed(view)
        self._own_tags = list_tags(view, view_id)
        self._tags = {id: list_tags(place, view_id) for id, place in sources.items()}

    def keep(self, view: LanceDataset, version: int, tell: Callable[[str], None]) -> None:
        """Protect the view's new version, which the next refresh compares with."""
        if tag_of(self._view_id, version) in self._own_tags:
            return
        try:
            keep_version(view, self._view_id, version)
        except PenstockError as error:
            # The next refresh may have to compute everything, but this one succeeded.
            tell(f"version {version} of the view is not kept: {error.message}")

    def let_go(self, needed: Sequence[Watermark], tell: Callable[[str], None]) -> None:
        """Remove what no watermark needs; failures are logged and ignored."""
        try:
            lists = {name for each in needed for name in (each.failed, each.partitions)}
            remove_failed(self._view, self._lists - lists)
            own = {each.view_version for each in needed}
            remove_tags(self._view, self._own_tags - self._name(own))
            for id, place in self._sources.items():
                kept = {each.versions[id] for each in needed if id in each.versions}
                remove_tags(place, self._tags[id] - self._name(kept))
        except (OSError, PenstockError) as error:
            # The view is refreshed all the same.
            tell(f"what is not needed any more is left to the next refresh: {error}")

    def _name(self, versions: Collection[int]) -> set[str]:
        return {tag_of(self._view_id, version) for version in versions}
