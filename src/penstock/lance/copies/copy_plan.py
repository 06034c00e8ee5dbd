"""Choose the files of a table's folder that belong to versions up to given ones. Pure.

Lance's files never change under their name, so today's folder contains the past as well; later
additions are recognised by the numbers of manifests, and by the versions that tags name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.lance.commit.manifest import parse_name
from penstock.lance.copies.transfer import File
from penstock.lance.refs import BRANCHES, TAGS

# Hints to the newest version, written to save a listing; they would name a later version.
HINT = "latest_version_hint.json"
HOLD = "penstock-backup-"


@dataclass(frozen=True, slots=True)
class CopyPlan:
    """Which files of a table's folder to copy."""

    # By branch: the versions whose manifests exist and are copied.
    versions: dict[str, list[int]] = field(default_factory=dict)
    # Files that never change.
    files: list[File] = field(default_factory=list)
    # Files that may change, or name later versions: read once more.
    tags: list[File] = field(default_factory=list)
    branches: list[File] = field(default_factory=list)


def split_version(path: str) -> tuple[str, int] | None:
    """The branch and version of a manifest's path; None for any other file."""
    folder, _, name = path.rpartition("/")
    if folder != "_versions" and not (folder.startswith("tree/") and folder.endswith("/_versions")):
        return None
    if (found := parse_name(name)) is None:
        return None
    return folder.removesuffix("_versions").strip("/").removeprefix("tree/"), found[0]


def find_heads(files: Iterable[File]) -> dict[str, int]:
    """The newest version of each branch that has a manifest among these files."""
    heads: dict[str, int] = {}
    for file in files:
        if (found := split_version(file.path)) is not None:
            branch, version = found
            heads[branch] = max(version, heads.get(branch, 0))
    return heads


def plan_copy(files: Iterable[File], heads: Mapping[str, int]) -> CopyPlan:
    """Choose the files to copy, given the newest version of each branch.

    A branch without one was created later. Data files are copied whether a version needs them or
    not: interrupted jobs continue with files that no version has yet.
    """
    moment = CopyPlan()
    for file in files:
        if (found := split_version(file.path)) is not None:
            branch, version = found
            if version <= heads.get(branch, 0):
                moment.versions.setdefault(branch, []).append(version)
                moment.files.append(file)
        elif file.path.startswith(f"{TAGS}/"):
            if not file.path.startswith(f"{TAGS}/{HOLD}"):
                moment.tags.append(file)
        elif file.path.startswith(f"{BRANCHES}/"):
            moment.branches.append(file)
        elif not _is_passing(file.path):
            moment.files.append(file)
    return moment


def _is_passing(path: str) -> bool:
    """Whether a file is a draft, or only helps to find others."""
    folder, _, name = path.rpartition("/")
    is_draft = name.startswith(".tmp") or name.endswith(".tmp") or ".tmp-" in name
    # Staged manifests have names of their own beside the final ones.
    return is_draft or name == HINT or folder.endswith("_versions")
