"""Notes in a table's folder about finished files of a job.

A worker leaves a note for each file that it finished. The driver counts progress by them, and an
attempt that comes after a killed one uses the files instead of computing them again.
"""

import contextlib
import uuid
from enum import Enum

import msgspec
import numpy as np

from penstock.jobs.engine.fragment_work import FragmentWork
from penstock.jobs.engine.worker_notes import Beat
from penstock.lance.commit.replacement import ColumnFile
from penstock.lance.diff.masks import Mask, unpack
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names, write_file
from penstock.model.functions import RowError

# The note of a pause, before the number of its attempt.
PAUSED_NOTE = "paused-"


class StopKind(Enum):
    """How workers stop: in the middle of a batch, or once those that have begun are kept."""

    NOW = ""
    AFTER_BATCHES = "after batches"


class ValueOrigin(msgspec.Struct, frozen=True):
    """Who computed a file, and from which version of the table."""

    job: str
    attempt: int
    version: int
    # Tells the version from another of the same number; '' when that is not known.
    transaction: str = ""
    # What the inputs were called there; empty in notes of a release that had no other names.
    inputs: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True):
    """A finished file, and what it was computed from."""

    work: FragmentWork
    file: ColumnFile
    computed: int
    attempt: int
    seconds: float
    # Rows that this attempt gave to the function, those that it failed on, and those that are null
    # without a call because an input is.
    calls: int = 0
    failed: int = 0
    rows_null: int = 0
    # None: only of use to this job.
    origin: ValueOrigin | None = None

    def is_of(self, job: str, attempt: int) -> bool:
        """Whether this attempt made the file."""
        return self.attempt == attempt and (self.origin is None or self.origin.job == job)

    def serves(self, wanted: FragmentWork) -> bool:
        """Whether the file fits the fragment as it is now."""
        made = self.work
        return (
            (made.id, made.key, made.physical_rows) == (wanted.id, wanted.key, wanted.physical_rows)
            and made.target_files == wanted.target_files
            # More live rows than then: a restore brought deleted ones back.
            and wanted.live_rows <= made.live_rows
            and covers(made, wanted)
        )


def covers(made: FragmentWork, wanted: FragmentWork) -> bool:
    """Whether what was computed for a fragment is all that is wanted of it now."""
    same = (made.need, made.left, made.dead) == (wanted.need, wanted.left, wanted.dead)
    if same or (made.need is None and made.left is None and made.dead is None):
        return True
    count = made.physical_rows

    def unpacked(packed: bytes | None, *, otherwise: bool) -> Mask:
        return np.full(count, otherwise) if packed is None else unpack(packed, count)

    live = ~unpacked(wanted.dead, otherwise=False)
    need = live & unpacked(wanted.need, otherwise=True)
    left = live & unpacked(wanted.left, otherwise=False)
    has_value = unpacked(made.need, otherwise=True) & ~unpacked(made.dead, otherwise=False)
    kept_back = unpacked(made.left, otherwise=False)
    # A row that was dead has no value, whatever is wanted of it now.
    revived = live & unpacked(made.dead, otherwise=False)
    return not ((need & ~has_value) | (left & ~kept_back & ~has_value) | revived).any()


def write_checkpoint(place: Place, job: str, checkpoint: Checkpoint) -> None:
    """Write the note of a finished file; readers see all of it or nothing."""
    path = f"{FOLDER}/{job}/{checkpoint.work.id}-{uuid.uuid4().hex[:8]}.json"
    write_file(place, path, msgspec.json.encode(checkpoint))


class NewNotes(msgspec.Struct):
    """Notes that workers wrote since the last look."""

    checkpoints: list[Checkpoint] = msgspec.field(default_factory=list)
    errors: list[RowError] = msgspec.field(default_factory=list)
    lines: list[str] = msgspec.field(default_factory=list)


def read_new_notes(place: Place, job: str, seen: set[str]) -> NewNotes:
    """Read a job's notes with names that were not seen before."""
    folder, news = f"{FOLDER}/{job}", NewNotes()
    for name in sorted(set(list_names(place, folder)) - seen):
        kind, _, rest = name.partition("-")
        if not name.endswith(".json") or kind == "beat":
            continue
        seen.add(name)
        try:
            content = files.read(place, f"{folder}/{name}")
        except FileNotFoundError:
            # Swept since the listing.
            continue
        if kind == "errors":
            news.errors += msgspec.json.decode(content, type=list[RowError])
        elif kind == "out":
            news.lines += msgspec.json.decode(content, type=list[str])
        elif kind.isdecimal() and rest:
            news.checkpoints.append(msgspec.json.decode(content, type=Checkpoint))
    return news


def read_beats(place: Place, job: str, attempt: int) -> dict[int, int]:
    """How many rows of the unfinished fragments are done."""
    folder, found = f"{FOLDER}/{job}", dict[int, int]()
    for name in list_names(place, folder):
        if name.startswith("beat-") and name.endswith(".json"):
            with contextlib.suppress(FileNotFoundError):
                beat = msgspec.json.decode(files.read(place, f"{folder}/{name}"), type=Beat)
                if beat.attempt == attempt:
                    found[beat.fragment] = max(beat.rows, found.get(beat.fragment, 0))
    return found


def has_file(place: Place, location: Location, checkpoint: Checkpoint) -> bool:
    """Whether the file of a note still exists."""
    return files.exists(place, f"{location.data_folder}/{checkpoint.file.path}")


def request_stop(place: Place, job: str, attempt: int, how: StopKind = StopKind.NOW) -> None:
    """Ask the workers of an attempt to stop."""
    write_file(place, _stop_path(job, attempt), how.value.encode())


def is_stopped(place: Place, job: str, attempt: int) -> bool:
    """Whether nothing new is to be begun."""
    return files.exists(place, _stop_path(job, attempt))


def find_stop(place: Place, job: str, attempt: int) -> StopKind | None:
    """How the workers of an attempt are to stop; None when they are not."""
    try:
        return StopKind(files.read(place, _stop_path(job, attempt)).decode())
    except FileNotFoundError:
        return None


def note_pause(place: Place, job: str, attempt: int) -> None:
    """Record that an attempt was paused: what it left is kept for longer than a dead job's."""
    write_file(place, f"{FOLDER}/{job}/{PAUSED_NOTE}{attempt}", b"")


def may_have_died(place: Place, job: str, attempt: int) -> bool:
    """Whether the attempt before this one may have been killed, perhaps by a row."""
    return attempt > 1 and not files.exists(place, f"{FOLDER}/{job}/{PAUSED_NOTE}{attempt - 1}")


def _stop_path(job: str, attempt: int) -> str:
    return f"{FOLDER}/{job}/stop-{attempt}"
