"""What jobs leave beside a table, removed when nobody has use for it any more. All of it blocks."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lance import LanceDataset

from penstock.errors import Unavailable
from penstock.jobs.engine.checkpoints import PAUSED_NOTE, read_new_notes
from penstock.jobs.engine.fragment_work import is_file_of
from penstock.jobs.engine.worker_notes import WORKS_AS
from penstock.jobs.kept.store import (
    COLUMN,
    find_parts,
    name_store,
    name_writer,
    owner_of,
    owner_of_column,
)
from penstock.lance import refs
from penstock.lance.columns import computed
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location, open_newest
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names

# A job that was silent for this long is dead: the next one sweeps its files.
ABANDONED_SECONDS = 24 * 3600
# What nobody has added to or used for so long is of no use to anybody.
KEPT_SECONDS = 7 * 24 * 3600
# Clocks of writers and stores differ; a version may seem older than a file it refers to.
CLOCK_SECONDS = 3600
# How often, and how far apart, to retry a branch that exists and cannot be opened.
LOOKS, LOOK_SECONDS = 20, 0.02


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
    # A killed job may have left only an empty folder.
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


def has_others(place: Place, kept: str, job: str) -> bool:
    """Whether other jobs left finished work in a folder."""
    notes = read_new_notes(place, kept, set()).checkpoints
    return any(note.origin is None or note.origin.job != job for note in notes) or any(
        part.writer != name_writer(job) for part in find_parts(place, kept)
    )


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
    dataset: LanceDataset,
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
    """The folders of finished work, and when each was last written to."""
    found: dict[str, int] = {}
    for path, millis in entries:
        folder = path.removeprefix(f"{FOLDER}/").partition("/")[0]
        if owner_of(folder) is not None:
            found[folder] = max(millis, found.get(folder, 0))
    return found


def _find_useless(
    place: Place, dataset: LanceDataset, there: Mapping[str, int], kept: str, *, is_needed: bool
) -> set[str]:
    """Finished work that no later job can use: of a job that succeeded, of a function or a column
    that is no more, or that is too old."""
    before = (time.time() - KEPT_SECONDS) * 1000
    old = {folder for folder, millis in there.items() if millis < before}
    others = {each for each in there if each != kept and owner_of(each) == owner_of(kept)}
    own = set() if is_needed or kept not in there else {kept}
    columns = {each for each in there if (owner_of(each) or "").startswith(COLUMN)}
    # Also the job's own: its column may have been dropped meanwhile.
    rest = columns - old - others - own
    gone = rest - _list_needed(place, dataset, rest) if rest else set()
    return old | others | own | gone


def _list_needed(place: Place, dataset: LanceDataset, folders: Collection[str]) -> set[str]:
    """Those of the folders whose column is there, on its branch, with the function that made it."""
    found = set()
    for branch, newest in _open_branches(place, dataset):
        for column in computed.list_computed(newest.schema):
            if column.function is not None:
                owner = owner_of_column(column.binding, branch)
                found.add(name_store(owner, column.function.identity))
    return found & set(folders)


def _named_files(place: Place, folder: str) -> Iterator[str]:
    """The files that notes in a folder name."""
    return (note.file.path for note in read_new_notes(place, folder, set()).checkpoints)


def _list_jobs(entries: Collection[tuple[str, int]]) -> set[str]:
    """The jobs that have left files; a job that ends removes all of its own."""
    folders = {path.removeprefix(f"{FOLDER}/").partition("/")[0] for path, _ in entries}
    return {folder for folder in folders if owner_of(folder) is None}


def _is_written(place: Place, folder: str, jobs: Collection[str]) -> bool:
    """Whether one of these jobs has left something in a folder: it may be about to use it."""
    if not jobs:
        return False
    notes, writers = read_new_notes(place, folder, set()).checkpoints, set(map(name_writer, jobs))
    return any(note.origin is not None and note.origin.job in jobs for note in notes) or any(
        part.writer in writers for part in find_parts(place, folder)
    )


def _is_ahead(place: Place, folder: str, job: str, attempt: int) -> bool:
    """Whether a later attempt of the job, or a job after it, has left something in a folder."""
    notes = read_new_notes(place, folder, set()).checkpoints
    return any(
        note.origin is not None and note.origin.job == job and note.origin.attempt > attempt
        for note in notes
    )


def _remove_files(
    place: Place, location: Location, dataset: LanceDataset, is_ours: Callable[[str], bool]
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


def _referred_since(place: Place, dataset: LanceDataset, since: float) -> set[str]:
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


def _open_branches(place: Place, dataset: LanceDataset) -> Iterator[tuple[str, LanceDataset]]:
    """The newest version of every branch."""
    for branch in _list_branches(place):
        newest = _open_branch(place, dataset, branch)
        if newest is not None:
            yield branch, newest


def _open_branch(place: Place, dataset: LanceDataset, branch: str) -> LanceDataset | None:
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


def _paths(dataset: LanceDataset) -> set[str]:
    return {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}


def _abandoned(entries: Collection[tuple[str, int]]) -> list[str]:
    """Jobs that left notes here a long time ago, each after the other names that it worked under.

    Under those a job may have left files and no notes, or notes while its own are old. What a
    paused job left is kept for as long as finished work.
    """
    newest: dict[str, int] = {}
    jobs: dict[str, str] = {}
    paused: set[str] = set()
    for path, millis in entries:
        job, _, name = path.removeprefix(f"{FOLDER}/").partition("/")
        if owner_of(job) is not None:
            continue
        newest[job] = max(millis, newest.get(job, 0))
        if name.startswith(PAUSED_NOTE):
            paused.add(job)
        if name.startswith(WORKS_AS):
            jobs[name.removeprefix(WORKS_AS)] = job
    found: list[str] = []
    for job in newest.keys() - jobs.keys():
        names = [*(key for key, of in jobs.items() if of == job), job]
        seconds = ABANDONED_SECONDS if paused.isdisjoint(names) else KEPT_SECONDS
        if max(newest.get(each, 0) for each in names) < (time.time() - seconds) * 1000:
            found += names
    return found
