"""One table, copied as it was at a moment, and looked at: what cannot be read is not in the copy.

All of it blocks.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import unquote

import msgspec

from penstock.errors import InvalidRequest
from penstock.lance.commit.manifest import BadManifest
from penstock.lance.copies import transfer
from penstock.lance.copies.checking import Flaw, Folder, check_versions
from penstock.lance.copies.moment import Moment, choose, find_heads, split_version
from penstock.lance.copies.rebasing import rebase
from penstock.lance.copies.transfer import File
from penstock.lance.refs import BRANCHES
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place, normalise_root
from penstock.model.locations import is_within, join

# Files of one table that are copied at once.
THREADS = 4


@dataclass(frozen=True, slots=True)
class Recorded:
    """A version that the catalog knows; its manifest may still have the name it was staged by."""

    branch: str
    version: int
    manifest_path: str
    staged_path: str


@dataclass(frozen=True, slots=True)
class Done:
    """What was copied, and the versions that were not because they cannot be read."""

    files: int
    bytes: int
    flaws: list[Flaw] = field(default_factory=list)
    heads: dict[str, int] = field(default_factory=dict)


def find_moment(place: Place, known: Mapping[str, int]) -> dict[str, int]:
    """The newest version of each branch: what the catalog knows, else what is in the folder."""
    return find_heads(transfer.list_files(place)) | dict(known)


def copy_table(
    source: Place, copy: Folder, heads: Mapping[str, int], recorded: Iterable[Recorded]
) -> Done:
    """Copy a table whose newest versions are held."""
    target = copy.place
    moment = choose(transfer.list_files(source), heads)
    copied = _copy_all(source, target, moment.files)
    for each in recorded:
        if each.manifest_path not in copied and each.staged_path:
            with contextlib.suppress(FileNotFoundError):
                size = transfer.copy(source, each.staged_path, target, each.manifest_path)
                copied[each.manifest_path] = size
    wanted = {branch: {*versions} for branch, versions in moment.versions.items()}
    for each in recorded:
        wanted.setdefault(each.branch, set()).add(each.version)
    flaws = check_versions(copy, wanted, copied.keys())
    bad = {(flaw.branch, flaw.version) for flaw in flaws}
    for path in [path for path in copied if split_version(path) in bad]:
        files.remove(target, path)
        del copied[path]
    copied |= _copy_refs(source, target, moment, wanted, bad)
    return Done(len(copied), sum(copied.values()), flaws, dict(heads))


def copy_folder(source: Place, target: Place, change: Callable[[str], str]) -> dict[str, int]:
    """Copy all of a folder; manifests that name it are told where they are, their sizes returned.

    Only branches' manifests do so.
    """
    copied = _copy_all(source, target, transfer.list_files(source))
    return rebase_folder(target, copied, change)


def rebase_folder(
    place: Place, paths: Iterable[str], change: Callable[[str], str]
) -> dict[str, int]:
    """Change the bases of a table's manifests, where they are; returns the sizes of those changed.

    It may be done again after it was interrupted.
    """
    changed = {}
    for path in paths:
        if split_version(path) is None:
            continue
        content = files.read(place, path)
        with contextlib.suppress(BadManifest, UnicodeDecodeError):
            written = rebase(content, change)
            if written != content:
                transfer.write(place, path, written)
                changed[path] = len(written)
    return changed


def moved_base(was: str, now: str) -> Callable[[str], str]:
    """What turns a base in a table's old folder into the same one in its new folder."""

    def change(base: str) -> str:
        try:
            whole = normalise_root(base)
            if is_within(whole, was):
                return now if whole == was else join(now, whole[len(join(was, "")) :])
        except InvalidRequest:
            pass
        return base

    return change


def _copy_all(source: Place, target: Place, found: Iterable[File]) -> dict[str, int]:
    """Copy files; returns the size of each that was still there."""

    def copy(file: File) -> tuple[str, int] | None:
        try:
            return file.path, transfer.copy(source, file.path, target)
        except FileNotFoundError:
            return None  # cleaned up meanwhile; whether a version needs it is looked at later

    with ThreadPoolExecutor(THREADS) as pool:
        return dict(each for each in pool.map(copy, found) if each is not None)


def _copy_refs(
    source: Place,
    target: Place,
    moment: Moment,
    wanted: Mapping[str, set[int]],
    bad: set[tuple[str, int]],
) -> dict[str, int]:
    """Copy the tags and branches that name versions which are in the copy."""
    good = {(b, v) for b, versions in wanted.items() for v in versions} - bad
    branches = {branch for branch, _ in good}
    copied = {}
    for file in (*moment.tags, *moment.branches):
        try:
            content = files.read(source, file.path)
            found = msgspec.json.decode(content, type=dict)
        except (FileNotFoundError, msgspec.MsgspecError):
            continue
        if file.path.startswith(f"{BRANCHES}/"):
            name = unquote(file.path.removeprefix(f"{BRANCHES}/").removesuffix(".json"))
            is_there = name in branches
        else:
            is_there = (found.get("branch") or "", found.get("version")) in good
        if is_there:
            transfer.write(target, file.path, content)
            copied[file.path] = len(content)
    return copied
