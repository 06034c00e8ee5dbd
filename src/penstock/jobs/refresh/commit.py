"""The one commit of a refresh, tried until it is in."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.crash import crash_point
from penstock.jobs.engine.committing import NoFit, commit_until_in
from penstock.jobs.refresh.context import Change, Work
from penstock.jobs.refresh.history import commit_refresh, find_moved, read_history
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.commit.removal import Removal, remove_rows

if TYPE_CHECKING:
    from lance import LanceDataset

# Of the version that is open: rows go, others come.
Commit = Callable[["LanceDataset", Removal, Sequence[str], Mapping[str, str]], int]


def commit_change(
    work: Work, change: Change, properties: dict[str, str], commit: Commit = commit_refresh
) -> int | None:
    """Make a change visible, all of it at once; returns its version, None when it is empty."""
    try_commit = partial(_try_commit, work, change, properties, commit)
    return commit_until_in(work.attempt, try_commit, "the view")


def _try_commit(
    work: Work, change: Change, properties: dict[str, str], commit: Commit
) -> int | None:
    """The version, None when there is nothing to commit; raises NoFit when somebody was faster."""
    latest = work.catalog.open_latest(work.spec.table, "")
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
    version = commit(latest, removal, change.fragments, properties)
    crash_point("refresh committed")
    return version
