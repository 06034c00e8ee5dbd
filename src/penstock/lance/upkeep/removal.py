"""Removal of old versions, and of files that no version needs any more. It blocks."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.lance import refs
from penstock.lance.commit.manifest import parse_name, versions_folder
from penstock.lance.doors import lance
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place


@dataclass(frozen=True, slots=True)
class Removed:
    """What was removed: versions, and files of them and of writers that came to nothing."""

    versions: int
    files: int
    bytes: int


def remove_versions(dataset: "lance.LanceDataset", versions: Sequence[int]) -> Removed:
    """Remove these versions, but those that tags and branches name.

    Files that never were part of a version go when they are seven days old: younger ones may be
    about to be committed.
    """
    done = dataset.cleanup_old_versions(
        versions=list(versions), error_if_tagged_old_versions=False, delete_unverified=False
    )
    removed = (
        done.data_files_removed
        + done.deletion_files_removed
        + done.index_files_removed
        + done.transaction_files_removed
    )
    return Removed(done.old_versions, removed, done.bytes_removed)


def list_on_storage(place: Place, branch: str) -> dict[int, int]:
    """The versions of a branch that have a manifest, and when each was written, in milliseconds."""
    return {
        named[0]: entry.modified_millis
        for entry in files.list_folder(place, versions_folder(branch))
        if (named := parse_name(entry.name)) is not None
    }


def list_named(place: Place, branch: str) -> dict[int, str]:
    """The versions of a branch that tags and other branches name, and what names each."""
    found: dict[int, str] = {}
    for name in refs.list_names(place, refs.BRANCHES):
        other = refs.find_branch(place, name)
        if other is not None and (other.parent_branch or "") == branch:
            found[other.parent_version] = "branch"
    for name in refs.list_names(place, refs.TAGS):
        tag = refs.find_tag(place, name)
        if tag is not None and (tag.branch or "") == branch:
            found[tag.version] = "tag"
    return found
