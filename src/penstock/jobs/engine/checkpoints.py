"""Notes in a table's folder about finished files of a job, and what is swept when a job ends.

A worker leaves a note for each file that it finished. The driver counts progress by them, and an
attempt that comes after a killed one uses the files instead of computing them again.
"""

import contextlib
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.errors import Unavailable
from penstock.jobs.backfill.plan import FragmentWork, is_file_of, short_job
from penstock.jobs.backfill.plan_rows import covers
from penstock.jobs.engine.worker_notes import Beat
from penstock.jobs.kept.parts import list_parts
from penstock.jobs.kept.work import (
    COLUMN,
    KEPT_SECONDS,
    Origin,
    name_folder,
    owner_of,
    owner_of_column,
)
from penstock.jobs.refresh.view_notes import KEY
from penstock.lance import refs
from penstock.lance.columns import computed
from penstock.lance.commit.replacement import ColumnFile
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location, open_newest
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names, write_file
from penstock.model.functions import RowError

if TYPE_CHECKING:
    from lance import LanceDataset

# A job that was silent for so long is not coming back: what it left is swept by the next one.
ABANDONED_SECONDS = 24 * 3600
# Clocks of writers and stores differ; a version may seem older than a file that it refers to.
CLOCK_SECONDS = 3600
# How often, and how far apart, a branch is looked at that is there and cannot be opened.
LOOKS, LOOK_SECONDS = 20, 0.02


class Checkpoint(msgspec.Struct, frozen=True):
    """A finished file, and what it was computed from."""

    work: FragmentWork
    file: ColumnFile
    computed: int
    attempt: int
    seconds: float
    # Rows that a function was given by this attempt, and those that it failed on.
    calls: int = 0
    failed: int = 0
    # None: it is of no use to others than this job.
    origin: Origin | None = None

    def is_of(self, job: str, attempt: int) -> bool:
        """Whether this attempt made the file."""
        return self.attempt == attempt and (self.origin is None or self.origin.job == job)

    def serves(self, wanted: FragmentWork) -> bool:
        """Whether the file can be put into the fragment as it is now."""
        made = self.work
        return (
            (made.id, made.key, made.physical_rows) == (wanted.id, wanted.key, wanted.physical_rows)
            and made.target_files == wanted.target_files
            # More rows than then were alive: a restore brought deleted ones back.
            and wanted.live_rows <= made.live_rows
            and covers(made, wanted)
        )


def write_checkpoint(place: Place, job: str, checkpoint: Checkpoint) -> None:
    """Leave the note of a finished file; a reader sees all of it or nothing."""
    path = f"{FOLDER}/{job}/{checkpoint.work.id}-{uuid.uuid4().hex[:8]}.json"
    write_file(place, path, msgspec.json.encode(checkpoint))


class News(msgspec.Struct):
    """What workers wrote since the last look."""

    checkpoints: list[Checkpoint] = msgspec.field(default_factory=list)
    errors: list[RowError] = msgspec.field(default_factory=list)
    lines: list[str] = msgspec.field(default_factory=list)


def read_news(place: Place, job: str, seen: set[str]) -> News:
    """What a job's workers tell in files whose names were not seen before."""
    folder, news = f"{FOLDER}/{job}", News()
    for name in sorted(set(list_names(place, folder)) - seen):
        kind, _, rest = name.partition("-")
        if not name.endswith(".json") or kind == "beat":
            continue
        seen.add(name)
        try:
            content = files.read(place, f"{folder}/{name}")
        except FileNotFoundError:
            # Swept between the listing and now.
            continue
        if kind == "errors":
            news.errors += msgspec.json.decode(content, type=list[RowError])
        elif kind == "out":
            news.lines += msgspec.json.decode(content, type=list[str])
        elif kind.isdecimal() and rest:
            news.checkpoints.append(msgspec.json.decode(content, type=Checkpoint))
    return news


def read_beats(place: Place, job: str, attempt: int) -> dict[int, int]:
    """How many rows of the fragments that are being computed are done."""
    folder, found = f"{FOLDER}/{job}", dict[int, int]()
    for name in list_names(place, folder):
        if name.startswith("beat-") and name.endswith(".json"):
            with contextlib.suppress(FileNotFoundError):
                beat = msgspec.json.decode(files.read(place, f"{folder}/{name}"), type=Beat)
                if beat.attempt == attempt:
                    found[beat.fragment] = max(beat.rows, found.get(beat.fragment, 0))
    return found


def has_file(place: Place, location: Location, checkpoint: Checkpoint) -> bool:
    """Whether the file of a note is still there."""
    return files.exists(place, f"{location.data_folder}/{checkpoint.file.path}")


def has_others(place: Place, kept: str, job: str) -> bool:
    """Whether other jobs have left finished work in a folder."""
    notes = read_news(place, kept, set()).checkpoints
    return any(note.origin is None or note.origin.job != job for note in notes) or any(
        part.writer != short_job(job) for part in list_parts(place, kept)
    )


def request_stop(place: Place, job: str, attempt: int) -> None:
    """Ask the workers of an attempt to stop at their next fragment."""
    write_file(place, _stop_path(job, attempt), b"")


def is_stopped(place: Place, job: str, attempt: int) -> bool:
    return files.exists(place, _stop_path(job, attempt))


@translated()
def sweep(
    location: Location, job: str, attempt: int, kept: str = "", *, is_needed: bool = False
) -> int:
    """Remove a job's notes, and its files that no version refers to; returns how many files.

    `kept` is where finished work of its column lies: that goes as well, unless the next job needs
    it. What a later attempt wrote is not touched: this one may not know yet that it is not the
    last.
    """
    place = location.place()
    dataset = open_newest(location)
    # A killed job may have left nothing but an empty folder.
    entries = [*files.list_below(place, FOLDER), *files.list_subfolders(place, FOLDER)]
    there = _list_kept(entries)
    named = set(_named_files(place, kept)) if kept in there and is_needed else set[str]()
    removed = _remove_files(
        place, location, dataset, lambda name: is_file_of(name, job, attempt) and name not in named
    )
    _sweep_notes(place, job)
    # Nothing says which branch they were on.
    abandoned = [other for other in _abandoned(entries) if other != job]
    useless = _find_useless(place, dataset, there, kept, is_needed=is_needed)
    if kept in useless and _is_ahead(place, kept, job, attempt):
        useless.remove(kept)
    at_work = _list_jobs(entries) - {job, *abandoned}
    useless -= {each for each in useless - {kept} if _is_written(place, each, at_work)}
    everywhere = [location]
    if abandoned or useless - {kept}:
        everywhere = [replace(location, branch=name) for name in _list_branches(place)]
    removed += _remove_kept(place, dataset, useless, everywhere)
    for other in abandoned:
        for each in everywhere:
            is_its = partial(is_file_of, job=other)
            removed += _remove_files(place, each, dataset, is_its)
        _sweep_notes(place, other)
    return removed


def sweep_kept(location: Location, is_gone: Callable[[str], bool]) -> None:
    """Remove finished work whose owner is gone, with its files that no version refers to.

    What a job works on is left to its own end.
    """
    place = location.place()
    entries = files.list_below(place, FOLDER)
    folders = {each for each in _list_kept(entries) if is_gone(owner_of(each) or "")}
    at_work = _list_jobs(entries)
    folders = {each for each in folders if not _is_written(place, each, at_work)}
    if not folders:
        return
    dataset = open_newest(location)
    everywhere = [replace(location, branch=name) for name in _list_branches(place)]
    _remove_kept(place, dataset, folders, everywhere)


def _remove_kept(
    place: Place,
    dataset: "LanceDataset",
    folders: Collection[str],
    everywhere: Sequence[Location],
) -> int:
    removed = 0
    for folder in folders:
        names = set(_named_files(place, folder))
        for each in everywhere if names else ():
            removed += _remove_files(place, each, dataset, names.__contains__)
        _sweep_notes(place, folder)
    return removed


def _list_kept(entries: Collection[tuple[str, int]]) -> dict[str, int]:
    """The folders of finished work, and when something was last written there."""
    found: dict[str, int] = {}
    for path, millis in entries:
        folder = path.removeprefix(f"{FOLDER}/").partition("/")[0]
        if owner_of(folder) is not None:
            found[folder] = max(millis, found.get(folder, 0))
    return found


def _find_useless(
    place: Place, dataset: "LanceDataset", there: Mapping[str, int], kept: str, *, is_needed: bool
) -> set[str]:
    """Finished work that no later job can use: of a job that succeeded, of a function or a column
    that is no more, or that is too old."""
    before = (time.time() - KEPT_SECONDS) * 1000
    old = {folder for folder, millis in there.items() if millis < before}
    others = {each for each in there if each != kept and owner_of(each) == owner_of(kept)}
    own = set() if is_needed or kept not in there else {kept}
    columns = {each for each in there if (owner_of(each) or "").startswith(COLUMN)}
    # Also of the job itself: perhaps its column was dropped meanwhile.
    rest = columns - old - others - own
    gone = rest - _list_needed(place, dataset, rest) if rest else set()
    return old | others | own | gone


def _list_needed(place: Place, dataset: "LanceDataset", folders: Collection[str]) -> set[str]:
    """Those of the folders whose column is there, on its branch, with the function that made it."""
    found = set()
    for branch, newest in _open_branches(place, dataset):
        for column in computed.list_computed(newest.schema):
            if column.function is not None:
                owner = owner_of_column(column.binding, branch)
                found.add(name_folder(owner, column.function.identity))
    return found & set(folders)


def _named_files(place: Place, folder: str) -> Iterator[str]:
    """The files that notes in a folder name."""
    return (note.file.path for note in read_news(place, folder, set()).checkpoints)


def _list_jobs(entries: Collection[tuple[str, int]]) -> set[str]:
    """The jobs that have left something; one that ends removes all of it."""
    folders = {path.removeprefix(f"{FOLDER}/").partition("/")[0] for path, _ in entries}
    return {folder for folder in folders if owner_of(folder) is None}


def _is_written(place: Place, folder: str, jobs: Collection[str]) -> bool:
    """Whether one of these jobs has left a file in a folder: it may be about to commit it."""
    if not jobs:
        return False
    notes = read_news(place, folder, set()).checkpoints
    return any(note.origin is not None and note.origin.job in jobs for note in notes)


def _is_ahead(place: Place, folder: str, job: str, attempt: int) -> bool:
    """Whether a later attempt of the job, or a job after it, has left something in a folder."""
    notes = read_news(place, folder, set()).checkpoints
    return any(
        note.origin is not None and note.origin.job == job and note.origin.attempt > attempt
        for note in notes
    )


def _remove_files(
    place: Place, location: Location, dataset: "LanceDataset", is_ours: Callable[[str], bool]
) -> int:
    """Remove those of some data files that no version refers to."""
    names = set(list_names(place, location.data_folder))
    loose = {name for name in names - _paths(dataset) if is_ours(name)}
    if loose:
        # Only now, because a listing with times has to look at each file.
        entries = files.list_folder(place, location.data_folder)
        written = [entry.modified_millis / 1000 for entry in entries if entry.name in loose]
        loose -= _referred_since(place, dataset, min(written, default=0) - CLOCK_SECONDS)
    for name in loose:
        files.remove(place, f"{location.data_folder}/{name}")
    return len(loose)


def _sweep_notes(place: Place, job: str) -> None:
    folder = f"{FOLDER}/{job}"
    files.remove_all(Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}"))
    files.remove_if_empty(place, FOLDER)


def _referred_since(place: Place, dataset: "LanceDataset", since: float) -> set[str]:
    """The names of all files in versions that were committed since, on any branch."""
    found: set[str] = set()
    for branch, newest in _open_branches(place, dataset):
        for version in newest.versions():
            at: Any = version["timestamp"]
            if at.timestamp() >= since:
                found |= _paths(newest.checkout_version((branch or None, version["version"])))
    return found


def _list_branches(place: Place) -> list[str]:
    """All branches, and main, which is ''; Lance's own list reads each, and one may be gone."""
    return ["", *refs.list_names(place, refs.BRANCHES)]


def _open_branches(place: Place, dataset: "LanceDataset") -> "Iterator[tuple[str, LanceDataset]]":
    """The newest version of every branch."""
    for branch in _list_branches(place):
        newest = _open_branch(place, dataset, branch)
        if newest is not None:
            yield branch, newest


def _open_branch(place: Place, dataset: "LanceDataset", branch: str) -> "LanceDataset | None":
    """The newest version of a branch; None when somebody deleted it a moment ago.

    One that is there and cannot be opened must not be taken for deleted: its files are in use.
    """
    for _ in range(LOOKS):
        try:
            return dataset.checkout_version((branch or None, None))
        except (OSError, ValueError):
            if branch not in _list_branches(place):
                return None
            time.sleep(LOOK_SECONDS)
    raise Unavailable(f"branch {branch!r} cannot be opened", detail="look at the table's files")


def _paths(dataset: "LanceDataset") -> set[str]:
    return {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}


def _abandoned(entries: Collection[tuple[str, int]]) -> list[str]:
    """Jobs that left notes here a long time ago, each after the other names that it worked under.

    Under those a job may have left files and no notes, or notes while its own are old.
    """
    newest: dict[str, int] = {}
    jobs: dict[str, str] = {}
    for path, millis in entries:
        job, _, name = path.removeprefix(f"{FOLDER}/").partition("/")
        if owner_of(job) is not None:
            continue
        newest[job] = max(millis, newest.get(job, 0))
        if name.startswith(KEY):
            jobs[name.removeprefix(KEY)] = job
    before = (time.time() - ABANDONED_SECONDS) * 1000
    found: list[str] = []
    for job in newest.keys() - jobs.keys():
        names = [*(key for key, of in jobs.items() if of == job), job]
        if max(newest.get(each, 0) for each in names) < before:
            found += names
    return found


def _stop_path(job: str, attempt: int) -> str:
    return f"{FOLDER}/{job}/stop-{attempt}"
