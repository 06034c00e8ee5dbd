"""The versions that finished files were computed from, which tell whether their values hold."""

import msgspec

from penstock.errors import InvalidTableState
from penstock.jobs.engine.checkpoints import read_new_notes
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER


def list_origins(place: Place) -> set[int]:
    """The versions of a table, of whichever branch, that kept files are compared with. Blocks."""
    found = set[int]()
    for name in sorted({entry.split("/")[1] for entry in _list_folders(place)}):
        try:
            notes = read_new_notes(place, name, set())
        except msgspec.MsgspecError as error:
            raise InvalidTableState(
                f"a note in {FOLDER}/{name} of the table at {place.location} is damaged: {error}",
                detail="remove it: what it tells of is then computed again",
            ) from error
        found |= {note.origin.version for note in notes.checkpoints if note.origin is not None}
    return found


def _list_folders(place: Place) -> list[str]:
    paths = [path for path, _ in files.list_below(place, FOLDER)]
    return [path for path in paths if path.count("/") >= 2]
