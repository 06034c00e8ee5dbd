"""Notes in a table's folder about finished files of a job, and what is swept when a job ends.

A worker leaves a note for each file that it finished. The driver counts progress by them, and an
attempt that comes after a killed one uses the files instead of computing them again.
"""

import contextlib
import sys
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.datasets import files
from penstock.datasets.lake import Place
from penstock.datasets.notes import FOLDER, Beat, list_names, write_file
from penstock.datasets.remote import Location, open_newest
from penstock.datasets.replacement import ColumnFile
from penstock.datasets.view_notes import KEY
from penstock.model.functions import RowError
from penstock.pipeline.plan.backfill import FragmentWork, is_file_of
from penstock.pipeline.plan.rows import covers

if TYPE_CHECKING:
    from lance import LanceDataset

# A job that was silent for so long is not coming back: what it left is swept by the next one.
ABANDONED_SECONDS = 24 * 3600
# Clocks of writers and stores differ; a version may seem older than a file that it refers to.
CLOCK_SECONDS = 3600


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
        content = files.read(place, f"{folder}/{name}")
        seen.add(name)
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


def request_stop(place: Place, job: str, attempt: int) -> None:
    """Ask the workers of an attempt to stop at their next fragment."""
    write_file(place, _stop_path(job, attempt), b"")


def is_stopped(place: Place, job: str, attempt: int) -> bool:
    return files.exists(place, _stop_path(job, attempt))


def sweep(location: Location, job: str, attempt: int) -> int:
    """Remove a job's notes, and its files that no version refers to; returns how many files.

    What a later attempt wrote is not touched: this one may not know yet that it is not the last.
    """
    place = location.place()
    dataset = open_newest(location)
    removed = _sweep_files(place, location, job, attempt, dataset)
    _sweep_notes(place, job)
    if abandoned := _abandoned(place):
        # Nothing says which branch they were on.
        everywhere = [replace(location, branch=name) for name in ("", *dataset.branches.list())]
        for other in abandoned:
            for each in everywhere:
                removed += _sweep_files(place, each, other, sys.maxsize, dataset)
            _sweep_notes(place, other)
    return removed


def _sweep_files(
    place: Place, location: Location, job: str, attempt: int, dataset: "LanceDataset"
) -> int:
    names = set(list_names(place, location.data_folder))
    loose = {name for name in names - _paths(dataset) if is_file_of(name, job, attempt)}
    if loose:
        # Only now, because a listing with times has to look at each file.
        entries = files.list_folder(place, location.data_folder)
        written = [entry.modified_millis / 1000 for entry in entries if entry.name in loose]
        loose -= _referred_since(dataset, min(written, default=0) - CLOCK_SECONDS)
    for name in loose:
        files.remove(place, f"{location.data_folder}/{name}")
    return len(loose)


def _sweep_notes(place: Place, job: str) -> None:
    folder = f"{FOLDER}/{job}"
    files.remove_all(Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}"))
    files.remove_if_empty(place, FOLDER)


def _referred_since(dataset: "LanceDataset", since: float) -> set[str]:
    """The names of all files in versions that were committed since, on any branch."""
    found: set[str] = set()
    for branch in (None, *dataset.branches.list()):
        newest = dataset.checkout_version((branch, None))
        for version in newest.versions():
            at: Any = version["timestamp"]
            if at.timestamp() >= since:
                found |= _paths(newest.checkout_version((branch, version["version"])))
    return found


def _paths(dataset: "LanceDataset") -> set[str]:
    return {file.path for fragment in dataset.get_fragments() for file in fragment.data_files()}


def _abandoned(place: Place) -> list[str]:
    """Jobs that left notes here a long time ago, each after the other names that it worked under.

    Under those a job may have left files and no notes, or notes while its own are old.
    """
    newest: dict[str, int] = {}
    jobs: dict[str, str] = {}
    for path, millis in files.list_below(place, FOLDER):
        job, _, name = path.removeprefix(f"{FOLDER}/").partition("/")
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
