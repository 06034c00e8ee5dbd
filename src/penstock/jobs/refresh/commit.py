"""The one commit of a refresh, tried until it is in."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.crash import crash_point
from penstock.errors import ConcurrentCommit, OutcomeUnknown, PenstockError, Unavailable
from penstock.jobs.refresh.context import Change, Work
from penstock.jobs.refresh.history import commit_refresh, find_moved, read_history
from penstock.lance.columns.schemas import decode_schema
from penstock.lance.commit.removal import Removal, remove_rows

if TYPE_CHECKING:
    from lance import LanceDataset

MAX_TRIES = 20
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.02, 1.0


# Of the version that is open: rows go, others come.
Commit = Callable[["LanceDataset", Removal, Sequence[str], Mapping[str, str]], int]


def commit_change(
    work: Work, change: Change, properties: dict[str, str], commit: Commit = commit_refresh
) -> int | None:
    """Make a change visible, all of it at once; returns its version, None when it is empty."""
    pause, last = FIRST_PAUSE_SECONDS, PenstockError()
    for _ in range(MAX_TRIES):
        work.attempt.fence()
        try:
            found = _try_commit(work, change, properties, commit)
        except (ConcurrentCommit, Unavailable, OutcomeUnknown) as error:
            # The next try looks at the view first, and so finds a commit that went in.
            last = error
            time.sleep(pause)
            pause = min(MAX_PAUSE_SECONDS, pause * 2)
        else:
            if isinstance(found, str):
                # Another attempt plans anew.
                raise ConcurrentCommit(f"the view changed while it was refreshed: {found}")
            return found
    raise ConcurrentCommit(
        f"the commit failed {MAX_TRIES} times: {last.message}",
        detail="try again when fewer write to this view",
    )


def _try_commit(
    work: Work, change: Change, properties: dict[str, str], commit: Commit
) -> int | str | None:
    """The version, None when there is nothing to commit, or why the change does not fit."""
    latest = work.catalog.open_latest(work.spec.table, "")
    history = read_history(latest, work.view.version)
    refresh = history.refresh
    if refresh is not None:
        is_own = refresh.job == work.attempt.job
        return refresh.version if is_own else f"version {refresh.version} is another refresh"
    if history.foreign or history.gap:
        return history.foreign or history.gap
    names = decode_schema(work.definition.schema).names
    if history.is_altered and (moved := find_moved(latest, work.view, names)):
        return f"column {moved} was altered"
    removal = remove_rows(latest, work.location, change.removes)
    if not (removal.removed or removal.updated or change.fragments):
        return None
    version = commit(latest, removal, change.fragments, properties)
    crash_point("refresh committed")
    return version
