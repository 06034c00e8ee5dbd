"""What workers tell the driver in small files: errors of rows, what was printed, how far they are.

They lie in the job's folder, beside the notes of finished files. A reader sees all of one or
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


class Beat(msgspec.Struct, frozen=True):
    """How far a task is in the fragment that it works on."""

    attempt: int
    fragment: int
    rows: int


def write_errors(place: Place, job: str, errors: Sequence[RowError]) -> None:
    """Tell of rows that failed."""
    write_note(place, job, f"errors-{uuid.uuid4().hex[:12]}.json", list(errors))


def write_output(place: Place, job: str, lines: Sequence[str]) -> None:
    """Tell what a function printed."""
    write_note(place, job, f"out-{uuid.uuid4().hex[:12]}.json", list(lines))


def write_beat(place: Place, job: str, task: str, beat: Beat) -> None:
    """Tell how far a task is; a beat takes the place of the task's last one."""
    write_note(place, job, f"beat-{task}.json", beat)


def write_note(place: Place, job: str, name: str, content: Any) -> None:
    write_file(place, f"{FOLDER}/{job}/{name}", msgspec.json.encode(content))


def write_first(place: Place, job: str, name: str, content: Any) -> bool:
    """Write a note that there is one of; False, and nothing changed, when it is there."""
    path, staged = f"{FOLDER}/{job}/{name}", f"{FOLDER}/{job}/{uuid.uuid4().hex[:8]}.tmp"
    encoded = msgspec.json.encode(content)
    if not place.is_local:
        return files.publish(place, staged, path, encoded)
    write_file(place, staged, encoded)
    try:
        return files.publish(place, staged, path, encoded)
    finally:
        files.remove(place, staged)
