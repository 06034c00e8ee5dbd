"""Values of rows that wait for the rest of their file: by their places in a fragment, or by a key.

A worker leaves a part whenever its values have been in memory only for a while; a later try of the
same work takes them from there. Every file has a name of its own, so that two tries of the same
work never write the same one.
"""

import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.jobs.backfill.plan import JOB_CHARACTERS, short_job
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names, write_file

OFFSET, FAILED, ROW_ID = "_offset", "_failed", "_rowid"
# Where they stand in a part: the function's own columns may be called the same.
OFFSET_AT, FAILED_AT, ID_AT = range(3)
ORIGIN_KEY = b"penstock.origin"


class Part(NamedTuple):
    """A file with values of some rows from the first to the last; others may lie between them."""

    name: str
    start: int
    end: int

    @property
    def fragment(self) -> int:
        return int(self.name.split("-")[0])

    @property
    def key(self) -> str:
        return self.name.split("-")[1]

    @property
    def writer(self) -> str:
        """The job that left it, as names of files show it."""
        return self.name.split("-")[5][:JOB_CHARACTERS]


def write_part(
    place: Place,
    job: str,
    fragment: int,
    key: str,
    attempt: int,
    offsets: Any,
    failed: Any,
    values: "Sequence[pa.RecordBatch]",
    ids: Any = None,
    origin: bytes | None = None,
    writer: str = "",
) -> None:
    """Leave values by offset, and by row id if that is known; the failed ones are null.

    The origin says which version they were computed from, the writer is the job that did so.
    """
    start, end = int(offsets.min()), int(offsets.max()) + 1
    unique = f"{short_job(writer)}{uuid.uuid4().hex[:8]}"
    name = f"{fragment}-{key}-{attempt}-{start}-{end}-{unique}.arrow"
    known = [] if ids is None else [pa.field(ROW_ID, pa.int64())]
    schema = pa.schema(
        [pa.field(OFFSET, pa.int64()), pa.field(FAILED, pa.bool_()), *known, *values[0].schema],
        None if origin is None else {ORIGIN_KEY: origin},
    )
    sink = pa.BufferOutputStream()
    at = 0
    with pa.ipc.new_file(sink, schema) as file:
        for each in values:
            rows = slice(at, at + each.num_rows)
            columns = [pa.array(offsets[rows]), pa.array(failed[rows])]
            columns += [] if ids is None else [pa.array(ids[rows])]
            file.write_batch(pa.record_batch([*columns, *each.columns], schema=schema))
            at += each.num_rows
    write_file(place, f"{FOLDER}/{job}/parts/{name}", sink.getvalue())


def list_parts(place: Place, job: str) -> list[Part]:
    """All parts of a folder, by their place; they may overlap."""
    found = []
    for name in list_names(place, f"{FOLDER}/{job}/parts"):
        if name.endswith(".arrow"):
            start, end = name.split("-")[3:5]
            found.append(Part(name, int(start), int(end)))
    return sorted(found, key=lambda part: (part.start, -part.end, part.name))


def find_parts(place: Place, job: str, fragment: int, key: str) -> list[Part]:
    """The parts of a fragment by their place."""
    prefix = f"{fragment}-{key}-"
    return [part for part in list_parts(place, job) if part.name.startswith(prefix)]


def remove_parts(place: Place, job: str, fragment: int, key: str) -> None:
    """Remove the parts of a fragment, whose rows are all in its file."""
    for part in find_parts(place, job, fragment, key):
        files.remove(place, f"{FOLDER}/{job}/parts/{part.name}")


def read_part(place: Place, job: str, part: Part) -> "pa.Table":
    """The rows of a part."""
    content = files.read(place, f"{FOLDER}/{job}/parts/{part.name}")
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()
