"""Commit finished files of a backfill.

A file is committed only while its inputs, and what it replaces, are as they were when it was
computed; otherwise its rows are looked for where they are now.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from lance import LanceDataset

from penstock.crash import crash_point
from penstock.errors import ConcurrentCommit
from penstock.jobs.backfill.plan import BackfillOptions, Fill, fragment_key
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.committing import NoFit, commit_until_in
from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.specs import BackfillSpec
from penstock.lance.commit.replacement import (
    ATTEMPT_PROPERTY,
    COLUMN_PROPERTY,
    FRAGMENTS_PROPERTY,
    FUNCTION_PROPERTY,
    JOB_PROPERTY,
    ROWS_PROPERTY,
    commit_files,
)
from penstock.lance.diff.masks import unpack
from penstock.lance.read.scans import live_rows
from penstock.lance.session.remote import Location, RemoteCatalog
from penstock.lance.storage.side_files import list_names
from penstock.model.fragments import FragmentState


class Replacements:
    """The files of one attempt: those that wait for their commit, and those that are in."""

    def __init__(
        self,
        spec: BackfillSpec,
        options: BackfillOptions,
        catalog: RemoteCatalog,
        attempt: Attempt,
        location: Location,
        describe: Callable[[LanceDataset], Sequence[FragmentState]],
    ) -> None:
        self._spec = spec
        self._options = options
        self._catalog = catalog
        self._attempt = attempt
        self._location = location
        self._describe = describe
        self.ready: dict[int, Checkpoint] = {}
        self.committed: dict[int, Checkpoint] = {}
        self.versions: list[int] = []
        # Of fragments that others changed after they were committed, and that a plan has again.
        self._replaced: list[Checkpoint] = []
        # Others rewrite fragments while this runs: from then on what is finished goes in at once.
        self.is_disturbed = False
        # Rows left a fragment before its file went in: their values are in that file only.
        self.has_moved = False
        # Files that somebody removed before they went in.
        self._lost: set[str] = set()

    @property
    def fragments_committed(self) -> int:
        return len(self.committed) + len(self._replaced)

    @property
    def rows_ready(self) -> int:
        return _rows(self.ready.values())

    @property
    def rows_committed(self) -> int:
        return _rows(self.committed.values()) + _rows(self._replaced)

    @property
    def rows_failed(self) -> int:
        last = {note.work.id: note for note in self._replaced} | self.committed | self.ready
        return sum(note.failed for note in last.values())

    def begin(self, plan: Fill) -> None:
        """Make room for what a plan wants to be computed, once more if need be."""
        for work in plan.work:
            if (old := self.committed.pop(work.id, None)) is not None:
                self._replaced.append(old)

    def add(self, note: Checkpoint) -> None:
        """Take a finished file."""
        if note.work.id not in self.committed and note.file.path not in self._lost:
            self.ready[note.work.id] = note

    def commit_groups(self) -> None:
        """Commit as many whole groups as are ready, if there are to be any before the end."""
        size = 1 if self.is_disturbed else self._options.commit_granularity
        while size and len(self.ready) >= size:
            self._commit(list(self.ready)[: self._options.commit_granularity])

    def commit_all(self) -> bool:
        """Commit what is ready; False when some fragment has to be filled again."""
        complete = True
        while self.ready:
            complete &= self._commit(list(self.ready)[: self._options.commit_granularity])
        return complete

    def _commit(self, ids: Sequence[int]) -> bool:
        """Put the files of these fragments into the newest version, as far as they fit there."""
        return commit_until_in(self._attempt, partial(self._try_commit, ids), "this table")

    def _try_commit(self, ids: Sequence[int]) -> bool:
        spec = self._spec
        latest = self._catalog.open_latest(spec.table, spec.branch)
        try:
            states = {fragment.id: fragment for fragment in self._describe(latest)}
        except ConcurrentCommit as error:
            # The column has another declaration: trying again is of no use.
            raise NoFit(error.message) from error
        notes = {id: self.ready[id] for id in ids}
        done = {id for id, note in notes.items() if _holds(states.get(id), note)}
        fit = {id for id in notes.keys() - done if self._fits(latest, states.get(id), notes[id])}
        fit -= self._find_lost({id: notes[id] for id in fit})
        changed = set(ids) - done - fit
        for id in changed:
            del self.ready[id]
        self.is_disturbed |= bool(changed)
        self.has_moved |= bool(changed)
        self.has_moved |= any(states[id].rows < notes[id].work.live_rows for id in fit)
        if fit:
            files = {id: notes[id].file for id in sorted(fit)}
            rows = sum(notes[id].computed for id in fit)
            properties = self._properties(rows, len(files))
            self.versions.append(commit_files(latest, files, properties))
            crash_point("backfill committed")
            self._attempt.log(f"version {self.versions[-1]}: {len(files)} fragments, {rows} rows")
        elif done:
            self.versions.append(latest.version)
        for id in done | fit:
            self.committed[id] = self.ready.pop(id)
        return not changed

    def _find_lost(self, notes: Mapping[int, Checkpoint]) -> set[int]:
        """Those whose file is gone: one of an earlier job or attempt is in no version, and so a
        clean-up may take it while the rest is computed."""
        old = {
            id: note.file.path
            for id, note in notes.items()
            if not note.is_of(self._attempt.job, self._attempt.number)
        }
        if not old:
            return set()
        there = set(list_names(self._location.place(), self._location.data_folder))
        found = {id for id, path in old.items() if path not in there}
        self._lost |= {old[id] for id in found}
        return found

    def _fits(self, latest: LanceDataset, now: FragmentState | None, note: Checkpoint) -> bool:
        """Whether nobody changed what the file was made from, nor what it replaces."""
        made = note.work
        return (
            now is not None
            and now.physical_rows == made.physical_rows == note.file.rows
            and now.target_files == made.target_files
            # More rows than then are alive: a restore brought deleted ones back.
            and now.rows <= made.live_rows
            and fragment_key(now, self._options) == made.key
            and (made.deletions in ("", now.deletions) or _still_dead(latest, made))
        )

    def _properties(self, rows: int, fragments: int) -> dict[str, str]:
        found = {
            JOB_PROPERTY: self._attempt.job,
            ATTEMPT_PROPERTY: str(self._attempt.number),
            ROWS_PROPERTY: str(rows),
            FRAGMENTS_PROPERTY: str(fragments),
        }
        if (function := self._spec.function_identity) is not None:
            found[COLUMN_PROPERTY] = self._spec.binding
            found[FUNCTION_PROPERTY] = function
        return found


def _still_dead(latest: LanceDataset, made: FragmentWork) -> bool:
    """Whether every row without a value, because it was deleted, is deleted now."""
    if made.dead is None:
        return True
    fragment = latest.get_fragment(made.id)
    if fragment is None:
        return False
    return not (live_rows(latest, fragment) & unpack(made.dead, made.physical_rows)).any()


def _holds(now: FragmentState | None, note: Checkpoint) -> bool:
    """Whether the fragment has the file already: the answer to its commit was lost."""
    return now is not None and now.target_files == (note.file.path,)


def _rows(notes: Iterable[Checkpoint]) -> int:
    return sum(note.computed for note in notes)
