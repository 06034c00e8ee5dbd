"""Finished work of a refresh: notes about files with new rows, for later attempts."""

import json
import uuid
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.worker_notes import write_note
from penstock.lance.diff.row_sets import Ids, RowSet, join_row_sets, make_row_set
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names

NOTE = "made-"


class NewRows(Struct, frozen=True, kw_only=True):
    """Finished files with new rows of a view, and what they took."""

    # The key of the work that was done.
    key: str
    attempt: int
    # JSON of Lance's FragmentMetadata.
    fragments: tuple[str, ...]
    rows: int
    # Of these: rows whose source row, or partition, had none before.
    inserted: int
    calls: int
    seconds: float
    # Row ids that a function failed on, as a set.
    failed: bytes
    # Under a limit: how many rows were made of each source row that was called, and whether there
    # was more to call.
    counts: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False
    # Rows of the view that stay, though their source rows were given to a function; those that move
    # and differ in what it made; and how many source rows changed nothing.
    staying: bytes = b""
    alike: bytes = b""
    unchanged: int = 0
    # Digests of the rows, when they are only compared.
    digests: bytes = b""


class TimedNote(Protocol):
    """A note with the number of calls and their time."""

    @property
    def calls(self) -> int: ...

    @property
    def seconds(self) -> float: ...


def write_finished(place: Place, job: str, made: NewRows) -> None:
    """In a worker: record that files are finished."""
    write_note(place, job, f"{NOTE}{uuid.uuid4().hex[:12]}.json", made)


class FinishedRows:
    """The notes in the job's folder, by this attempt and those before it."""

    def __init__(self, location: Location, attempt: Attempt) -> None:
        self._location = location
        self._place = location.place()
        self._attempt = attempt
        self._seen: set[str] = set()
        self.by_key: dict[str, NewRows] = {}

    @property
    def rows(self) -> int:
        return sum(note.rows for note in self.by_key.values())

    def look(self) -> bool:
        """Read new notes; returns whether there were any."""
        folder, found = f"{FOLDER}/{self._attempt.job}", False
        for name in sorted(set(list_names(self._place, folder)) - self._seen):
            if not (name.startswith(NOTE) and name.endswith(".json")):
                continue
            self._seen.add(name)
            note = msgspec.json.decode(files.read(self._place, f"{folder}/{name}"), type=NewRows)
            known = self.by_key.get(note.key)
            if known is not None and known.attempt > note.attempt:
                continue
            if note.attempt != self._attempt.number and not self._has_files(note):
                continue
            self.by_key[note.key] = note
            found = True
        return found

    def _has_files(self, note: NewRows) -> bool:
        paths = [file["path"] for each in note.fragments for file in json.loads(each)["files"]]
        folder = self._location.data_folder
        return all(files.exists(self._place, f"{folder}/{path}") for path in paths)


def rate_of(notes: Sequence[TimedNote]) -> float | None:
    """Rows per core and second that functions were given."""
    calls, seconds = sum(note.calls for note in notes), sum(note.seconds for note in notes)
    return round(calls / seconds, 3) if calls and seconds else None


def encode_ids(ids: Ids) -> bytes:
    return make_row_set([ids]).encode()


def failed_rows(notes: Sequence[NewRows]) -> RowSet:
    """All row ids that functions failed on in this work."""
    return join_row_sets(note.failed for note in notes)
