"""Check that the files of a table's versions exist and can be opened. Everything here blocks."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import lance
from lance import LanceDataset

from penstock.errors import InvalidRequest, PenstockError
from penstock.lance.commit.manifest import MAGIC
from penstock.lance.copies.transfer import read_ends
from penstock.lance.errors import translated
from penstock.lance.storage.lake import Place, normalise_root
from penstock.model.locations import is_within, join

# Lance writes them for comparison only; reading a version does not need them.
NOT_NEEDED = "transaction file"
MAGIC_FILES = (".lance", ".manifest")


@dataclass(frozen=True, slots=True)
class Flaw:
    """A version that cannot be read: which file, and what is wrong with it."""

    branch: str
    version: int
    path: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Folder:
    """A table's folder; `was` is where its manifests say it is, if that is elsewhere."""

    place: Place
    options: Mapping[str, str]
    was: str = ""


def check_versions(
    folder: Folder, versions: Mapping[str, Collection[int]], present: Collection[str]
) -> list[Flaw]:
    """What is wrong with versions, by branch, in a folder that has these files."""
    present = {*present}
    flaws, needed = list[Flaw](), dict[str, list[tuple[str, int]]]()
    for branch, wanted in sorted(versions.items()):
        if not wanted:
            continue
        try:
            found = _find_needed(folder, branch, wanted)
        except PenstockError as error:
            flaws += _check_each(folder, branch, wanted, present, error)
            continue
        for version in sorted(wanted):
            paths = found.get(version)
            if paths is None:
                flaws.append(Flaw(branch, version, "", "its manifest is missing"))
                continue
            flaws += [Flaw(branch, version, p, "is missing") for p in sorted(paths - present)]
            for path in paths & present:
                needed.setdefault(path, []).append((branch, version))
    return flaws + _open_all(folder.place, needed)


def _find_needed(folder: Folder, branch: str, wanted: Iterable[int]) -> dict[int, set[str]]:
    """The files that each version needs, relative to the table."""
    oldest = min(wanted)
    dataset = _open(folder, branch, max(wanted))
    with translated():
        rows = dataset.tracked_files(min_version=oldest).read_all().to_pylist()
    found: dict[int, set[str]] = {}
    for row in rows:
        if row["type"] != NOT_NEEDED:
            path = _relative(folder, row["base_uri"], row["path"])
            found.setdefault(row["version"], set()).add(path)
    return found


def _check_each(
    folder: Folder,
    branch: str,
    wanted: Iterable[int],
    present: Collection[str],
    error: PenstockError,
) -> list[Flaw]:
    """Check versions one by one, when an unreadable one hides the others."""
    flaws = []
    for version in sorted(wanted):
        try:
            dataset = _open(folder, branch, version)
            with translated():
                paths = _list_data(folder, branch, dataset)
        except PenstockError as bad:
            flaws.append(Flaw(branch, version, "", f"it cannot be opened: {bad.message}"))
            continue
        flaws += [Flaw(branch, version, path, "is missing") for path in sorted(paths - {*present})]
    return flaws or [Flaw(branch, min(wanted), "", error.message)]


def _list_data(folder: Folder, branch: str, dataset: LanceDataset) -> set[str]:
    files = [data for fragment in dataset.get_fragments() for data in fragment.data_files()]
    return {
        _relative(folder, _base_of(folder, branch, dataset, data.base_id), f"data/{data.path}")
        for data in files
    }


def _base_of(folder: Folder, branch: str, dataset: LanceDataset, base: int | None) -> str:
    if base is not None:
        return str(dataset.base_paths()[base].path)
    return join(folder.place.location, f"tree/{branch}") if branch else folder.place.location


def _open(folder: Folder, branch: str, version: int) -> LanceDataset:
    with translated():
        options = dict(folder.options) or None
        if not branch:
            return lance.dataset(folder.place.location, version=version, storage_options=options)
        location = join(folder.place.location, f"tree/{branch}")
        return lance.dataset(location, version=version, storage_options=options)


def _relative(folder: Folder, base: str, path: str) -> str:
    """A file's path in the table; a file elsewhere keeps its full path."""
    whole = join(base, path)
    try:
        whole = normalise_root(whole)
    except InvalidRequest:
        return whole
    for location in (folder.place.location, folder.was):
        if location and is_within(whole, normalise_root(location)):
            return whole[len(join(normalise_root(location), "")) :]
    return whole


def _open_all(place: Place, needed: Mapping[str, list[tuple[str, int]]]) -> list[Flaw]:
    """Read the end of each file, where Lance starts reading it."""
    paths = [path for path in needed if path.endswith(MAGIC_FILES)]
    ends = read_ends(place, paths, len(MAGIC))
    return [
        Flaw(*version, path, "is cut short or damaged" if path in ends else "cannot be read")
        for path in paths
        if ends.get(path) != MAGIC
        for version in needed[path]
    ]
