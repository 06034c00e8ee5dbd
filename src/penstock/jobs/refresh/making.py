"""What a task of a refresh leaves when its rows are made: a note, which another attempt finds."""

import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from penstock.errors import Unavailable
from penstock.jobs.engine.worker_notes import write_note
from penstock.jobs.functions.task import Knobs
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.running import run_tasks
from penstock.jobs.spark.tasks import Engine, Tasks
from penstock.lance.diff.row_sets import RowSet, decode_row_set, make_row_set
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names
from penstock.model.functions import Function
from penstock.model.views import RefreshSpec

if TYPE_CHECKING:
    from penstock.lance.diff.row_sets import Ids


class Made(Struct, frozen=True, kw_only=True):
    """Finished files with new rows of a view, and what they took."""

    # What was done, as its order says it.
    key: str
    attempt: int
    # JSON of Lance's FragmentMetadata.
    fragments: tuple[str, ...]
    rows: int
    # Of these: rows whose source row, or partition, had none before.
    inserted: int
    calls: int
    seconds: float
    failed: bytes
    # Under a limit: how many rows were made of each source row that was called, and whether there
    # was more to call.
    counts: tuple[tuple[int, int], ...] = ()
    is_cut: bool = False


def to_knobs(spec: RefreshSpec) -> Knobs:
    """How the functions of a view are run; a bound of the source's rows is one of theirs, too."""
    size, seconds = spec.source_task_size, spec.batch_checkpoint_flush_interval_seconds
    first, most = spec.checkpoint_size, spec.max_checkpoint_size
    bounds = [each for each in (most or first, size) if each]
    knobs = Knobs(
        spec.intra_applier_concurrency or 1,
        batch_rows=first and min([first, *bounds]),
        min_rows=spec.min_checkpoint_size,
        max_rows=min(bounds) if bounds else None,
        is_full=spec.mode == "full",
    )
    return knobs if seconds is None else replace(knobs, flush_seconds=seconds)


def write_made(place: Place, job: str, made: Made) -> None:
    write_note(place, job, f"made-{uuid.uuid4().hex[:12]}.json", made)


def make_missing(
    work: Work,
    function: Function,
    keys: Sequence[str],
    sizes: Sequence[int],
    start: Callable[[Sequence[int], Engine], Tasks],
) -> list[Made]:
    """Start the tasks that no earlier attempt has finished, and wait; the notes of all.

    Each task has a key, and so many rows to call.
    """
    place, job = work.place, work.attempt.job
    known = read_made(place, work.location, job, keys) if work.attempt.number > 1 else {}
    missing = [number for number, key in enumerate(keys) if key not in known]
    if missing:
        work.attempt.log(f"making rows in {len(missing)} tasks")
        rows = sum(sizes[number] for number in missing)
        run_tasks(work, function, rows, partial(start, missing))
        known = read_made(place, work.location, job, keys)
    if lost := set(keys) - known.keys():
        raise Unavailable(f"the files of {len(lost)} tasks are not there")
    return [known[key] for key in keys]


def rate_of(notes: Sequence[Made]) -> float | None:
    """Rows that a core gave to the function in a second."""
    calls, seconds = sum(note.calls for note in notes), sum(note.seconds for note in notes)
    return round(calls / seconds, 3) if calls and seconds else None


def read_made(place: Place, location: Location, job: str, keys: Sequence[str]) -> dict[str, Made]:
    """The notes of these tasks, by key, whose files are still there."""
    found: dict[str, Made] = {}
    for name in list_names(place, f"{FOLDER}/{job}"):
        if name.startswith("made-") and name.endswith(".json"):
            note = msgspec.json.decode(files.read(place, f"{FOLDER}/{job}/{name}"), type=Made)
            if note.key in keys and _has_files(place, location, note):
                best = found.get(note.key)
                found[note.key] = note if best is None else max(best, note, key=_attempt)
    return found


def _attempt(made: Made) -> int:
    return made.attempt


def _has_files(place: Place, location: Location, note: Made) -> bool:
    paths = [file["path"] for each in note.fragments for file in json.loads(each)["files"]]
    return all(files.exists(place, f"{location.data_folder}/{path}") for path in paths)


def encode_ids(ids: "Ids") -> bytes:
    return make_row_set([ids]).encode()


def to_set(notes: Sequence[Made]) -> RowSet:
    """All ids that failed in these tasks."""
    import numpy as np

    parts = [decode_row_set(note.failed) for note in notes]
    ids = [
        np.concatenate([np.empty(0, np.int64), *map(np.arange, part.starts, part.ends)])
        for part in parts
    ]
    return make_row_set(ids)
