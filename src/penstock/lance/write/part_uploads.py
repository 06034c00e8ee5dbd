"""Uploads in parts: a folder inside the table collects parts until they are committed together.

Each part has a note of what was written for it, put down last: a part without one does not exist,
and of a part that was sent again one note counts. Everything here blocks.
"""

import base64
import re
import uuid
from dataclasses import dataclass

import msgspec

from penstock.errors import ConcurrentCommit, InvalidRequest
from penstock.lance.doors import lance, pa
from penstock.lance.session.handles import Datasets
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write import uploads
from penstock.lance.write.uploads import FOLDER, RowStream, WrittenFragments

# An empty file that is there for as long as the upload is.
BEGUN = "begun"
# A part that was sent twice has two notes, of the same rows.
_NOTE = re.compile(r"part-([\w-]+)\.[0-9a-f]+\.json", re.ASCII)


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts to one branch of a table."""

    place: Place
    branch: str
    id: str

    @property
    def folder(self) -> str:
        return f"{FOLDER}/{self.id}"


class _Note(msgspec.Struct):
    """A part that was written: where, and what."""

    # All files below `data`: those of the rows, and of large blobs.
    files: list[str]
    folder: str
    branch: str
    mode: str
    schema: str
    fragments: list[msgspec.Raw]
    fields: list[tuple[str, int]] | None


@dataclass(frozen=True, slots=True)
class Parts:
    """All parts of an upload: where each of their files is and belongs, and what they hold."""

    moves: tuple[tuple[str, str], ...]
    mode: str
    written: WrittenFragments


_note = msgspec.json.Decoder(_Note)


def open_upload(place: Place, branch: str, id: str) -> Upload:
    """An upload that was begun; raises when there is none."""
    upload = Upload(place, branch, id)
    if not re.fullmatch(r"[0-9a-f]{32}", id) or not files.exists(place, f"{upload.folder}/{BEGUN}"):
        raise InvalidRequest(
            f"this table has no upload {id[:80]!r}",
            detail="begin one with multipart_write/create; one without new parts is given up after "
            "catalog.staged_seconds",
        )
    return upload


def begin(place: Place) -> str:
    """Begin an upload; returns its id."""
    id = uuid.uuid4().hex
    files.write_new(place, f"{FOLDER}/{id}/{BEGUN}", b"")
    return id


def write_part(
    upload: Upload,
    part: str,
    mode: str,
    datasets: Datasets,
    rows: RowStream,
    base: "lance.LanceDataset | None",
    known: "pa.Schema | None",
) -> int:
    """Write one part into a folder of its own; returns how many rows it has."""
    if not re.fullmatch(r"[\w-]{1,80}", part, re.ASCII):
        raise InvalidRequest(
            f"upload_part_id is {part[:80]!r}", detail="use letters, digits, - and _"
        )
    folder = f"{upload.folder}/{uuid.uuid4().hex}"
    written = uploads.write_to(upload.place, upload.branch, folder, datasets, rows, base, known)
    start = len(f"{folder}/data/")
    note = _Note(
        [path[start:] for path, _ in files.list_below(upload.place, f"{folder}/data")],
        folder,
        upload.branch,
        mode,
        base64.b64encode(written.schema.serialize()).decode(),
        [msgspec.Raw(msgspec.json.encode(each.to_json())) for each in written.fragments],
        None if written.fields is None else list(written.fields),
    )
    name = f"part-{part}.{uuid.uuid4().hex}.json"
    files.write_new(upload.place, f"{upload.folder}/{name}", msgspec.json.encode(note))
    return written.rows


def list_parts(upload: Upload) -> Parts:
    """Everything that was written for the upload, as rows of one commit."""
    found = files.list_folder(upload.place, upload.folder)
    names = {match[1]: entry.name for entry in found if (match := _NOTE.fullmatch(entry.name))}
    paths = [f"{upload.folder}/{name}" for name in names.values()]
    notes = [_note.decode(files.read(upload.place, path)) for path in paths]
    if not notes:
        raise InvalidRequest("the upload has no parts", detail="insert rows with its upload_id")
    first = notes[0]
    for note in notes:
        if (note.branch, note.mode) != (upload.branch, first.mode):
            raise InvalidRequest(
                "the upload's parts have several branches or modes",
                detail="send the same branch and mode with each part, and to complete it",
            )
        if (note.schema, note.fields) != (first.schema, first.fields):
            raise ConcurrentCommit(
                "the table's columns were changed while the parts were on their way",
                detail="begin another upload, and send the rows again",
            )
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(first.schema)))
    fragments = [
        lance.FragmentMetadata.from_json(msgspec.json.encode(each).decode())
        for note in notes
        for each in note.fragments
    ]
    fields = None if first.fields is None else tuple(first.fields)
    target = uploads.data_folder(upload.branch)
    moves = tuple(
        (f"{note.folder}/data/{name}", f"{target}/{name}") for note in notes for name in note.files
    )
    return Parts(moves, first.mode, WrittenFragments(schema, fragments, fields))


def adopt(upload: Upload, parts: Parts) -> None:
    """Move the parts' files to where a commit expects them.

    Another request may be doing the same, or may be giving the upload up.
    """
    for path, to in parts.moves:
        try:
            files.move(upload.place, path, to)
        except FileNotFoundError:
            if not files.exists(upload.place, to):
                raise ConcurrentCommit(
                    "the upload was given up meanwhile", detail="send the rows again"
                ) from None


def discard(place: Place, id: str) -> None:
    """Remove an upload and what is left of its parts."""
    if not re.fullmatch(r"[0-9a-f]{32}", id):
        return
    folder = f"{FOLDER}/{id}"
    files.remove_all(Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}"))
    files.remove_if_empty(place, FOLDER)
