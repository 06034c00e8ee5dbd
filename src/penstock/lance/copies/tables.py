"""Copy one table as it was at a moment, and check the copy; unreadable versions are left out.

Everything here blocks.
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
from penstock.lance.copies.copy_plan import CopyPlan, find_heads, plan_copy, split_version
from penstock.lance.copies.rebasing import rebase
from penstock.lance.copies.transfer import File
from penstock.lance.refs import BRANCHES
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place, normalise_root
from penstock.model.locations import is_within, join

# How many files of one table are copied at once.
THREADS = 4


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """A version that the catalog knows; its manifest may still have its staged name."""

    branch: str
    version: int
    manifest_path: str
    staged_path: str


@dataclass(frozen=True, slots=True)
class TableCopy:
    """What was copied, and the versions that were left out because they cannot be read."""

    files: int
    bytes: int
    flaws: list[Flaw] = field(default_factory=list)
    heads: dict[str, int] = field(default_factory=dict)


def find_moment(place: Place, known: Mapping[str, int]) -> dict[str, int]:
    """The newest version of each branch: from the catalog, else from the folder."""
    return find_heads(transfer.list_files(place)) | dict(known)


def copy_table(
    source: Place, copy: Folder, heads: Mapping[str, int], recorded: Iterable[RecordedVersion]
) -> TableCopy:
    """Copy a table whose newest versions are held."""
    target = copy.place
    moment = plan_copy(transfer.list_files(source), heads)
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
    return TableCopy(len(copied), sum(copied.values()), flaws, dict(heads))


def copy_folder(source: Place, target: Place, change: Callable[[str], str]) -> dict[str, int]:
    """Copy a folder; manifests that name it are rewritten, and their sizes returned.

    Only manifests of branches name their folder.
    """
    copied = _copy_all(source, target, transfer.list_files(source))
    return rebase_folder(target, copied, change)


def rebase_folder(
    place: Place, paths: Iterable[str], change: Callable[[str], str]
) -> dict[str, int]:
    """Change the bases of a table's manifests in place; returns the sizes of those changed.

    Can be repeated after an interruption.
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
    """A function that turns a base in a table's old folder into the one in its new folder."""

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
    """Copy files; returns the size of each that still existed."""

    def copy(file: File) -> tuple[str, int] | None:
        try:
            return file.path, transfer.copy(source, file.path, target)
        except FileNotFoundError:
            return None  # cleaned up meanwhile; whether a version needs it is checked later

    with ThreadPoolExecutor(THREADS) as pool:
        return dict(each for each in pool.map(copy, found) if each is not None)


def _copy_refs(
    source: Place,
    target: Place,
    moment: CopyPlan,
    wanted: Mapping[str, set[int]],
    bad: set[tuple[str, int]],
) -> dict[str, int]:
    """Copy the tags and branches that name versions in the copy."""
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
