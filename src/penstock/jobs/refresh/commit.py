"""Commit a refresh, and try again until it is in."""

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lance import LanceDataset

from penstock.crash import crash_point
from penstock.errors import PenstockError
from penstock.jobs.engine.committing import NoFit, commit_until_in
from penstock.jobs.refresh.carrying import carry_columns
from penstock.jobs.refresh.context import ViewChange, Work
from penstock.jobs.refresh.history import commit_refresh, find_moved, read_history
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.commit.removal import Removal, list_files, remove_rows
from penstock.lance.storage import files

# Relative to the open version: rows to remove, and rows to add.
Commit = Callable[["LanceDataset", Removal, Sequence[str], Mapping[str, str]], int]


def commit_change(
    work: Work, change: ViewChange, properties: dict[str, str], commit: Commit = commit_refresh
) -> int | None:
    """Commit a change at once; returns its version, None when it is empty."""
    try_commit = partial(_try_commit, work, change, properties, commit, _Tries(work))
    return commit_until_in(work.attempt, try_commit, "the view")


class _Tries:
    """Commits that were tried, and the deletion files that each wrote.

    A refresh is committed on top of the version that it was made for, or not at all: once another
    version is on top of that, nothing will ever refer to the files of a failed try.
    """

    def __init__(self, work: Work) -> None:
        self._work = work
        self._files: list[tuple[int, tuple[str, ...]]] = []

    def begin(self, base: int, files: tuple[str, ...]) -> None:
        self._files.append((base, files))

    def succeed(self) -> None:
        """Note that the last try succeeded."""
        self._remove(name for _, names in self._files[:-1] for name in names)

    def look(self, latest: LanceDataset) -> None:
        """Remove the files of tries that failed for good."""
        lost = [each for each in self._files if each[0] < latest.version]
        if not any(names for _, names in lost):
            return
        try:
            since = range(self._work.view.version + 1, latest.version + 1)
            known = [list_files(latest.checkout_version(version)) for version in since]
        except (OSError, ValueError):
            # Cleaned up meanwhile; a later version may refer to its files.
            return
        self._files = [each for each in self._files if each not in lost]
        self._remove({name for _, names in lost for name in names}.difference(*known))

    def _remove(self, names: Iterable[str]) -> None:
        # Useless but harmless; Lance's clean-up finds them after a week.
        with contextlib.suppress(OSError, PenstockError):
            for name in names:
                files.remove(self._work.place, name)


def _try_commit(
    work: Work, change: ViewChange, properties: dict[str, str], commit: Commit, tries: _Tries
) -> int | None:
    """Try once; None when there is nothing to commit. Raises NoFit if another writer was first."""
    latest = work.catalog.open_latest(work.spec.table, "")
    tries.look(latest)
    history = read_history(latest, work.view.version)
    refresh = history.refresh
    if refresh is not None:
        if refresh.job == work.attempt.job:
            return refresh.version
        raise NoFit(f"version {refresh.version} is another refresh")
    if history.foreign or history.gap:
        raise NoFit(history.foreign or history.gap)
    names = decode_schema(work.definition.schema).names
    if history.is_altered and (moved := find_moved(latest, work.view, names)):
        raise NoFit(f"column {moved} was altered")
    removal = remove_rows(latest, work.location, change.removes)
    if not (removal.removed or removal.updated or change.fragments):
        return None
    tries.begin(latest.version, removal.files)
    fragments = carry_columns(latest, work.location, work.attempt, names, change)
    version = commit(latest, removal, fragments, properties)
    crash_point("refresh committed")
    tries.succeed()
    return version
