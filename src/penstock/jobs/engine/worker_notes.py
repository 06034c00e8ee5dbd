"""Small files in which workers report to the driver: failed rows, printed lines, progress.

They are in the job's folder, beside the notes of finished files. A reader sees all of a file or
nothing.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, write_file
from penstock.model.functions import RowError

# The name of a note that tells another name under which a job works.
WORKS_AS = "works-as-"


class Beat(msgspec.Struct, frozen=True):
    """A task's progress in its current fragment."""

    attempt: int
    fragment: int
    rows: int


def write_errors(place: Place, job: str, errors: Sequence[RowError]) -> None:
    """Report failed rows."""
    write_note(place, job, f"errors-{uuid.uuid4().hex[:12]}.json", list(errors))


def write_output(place: Place, job: str, lines: Sequence[str]) -> None:
    """Report what a function printed."""
    write_note(place, job, f"out-{uuid.uuid4().hex[:12]}.json", list(lines))


def write_beat(place: Place, job: str, task: str, beat: Beat) -> None:
    """Report a task's progress; replaces its last report."""
    write_note(place, job, f"beat-{task}.json", beat)


def write_note(place: Place, job: str, name: str, content: Any) -> None:
    write_file(place, f"{FOLDER}/{job}/{name}", msgspec.json.encode(content))


def write_first(place: Place, job: str, name: str, content: Any) -> bool:
    """Write a note that may exist only once; False, and nothing changed, when it exists."""
    path, staged = f"{FOLDER}/{job}/{name}", f"{FOLDER}/{job}/{uuid.uuid4().hex[:8]}.tmp"
    encoded = msgspec.json.encode(content)
    if not place.is_local:
        return files.publish(place, staged, path, encoded)
    write_file(place, staged, encoded)
    try:
        return files.publish(place, staged, path, encoded)
    finally:
        files.remove(place, staged)
