"""Values of a fragment's rows that wait for the rest of the fragment's file.

A worker leaves a part whenever its values have been in memory only for a while; a later try of the
same work takes them from there. Every file has a name of its own, so that two tries of the same
work never write the same one.
"""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.datasets import files
from penstock.datasets.lake import Place
from penstock.datasets.notes import FOLDER, list_names, write_file

if TYPE_CHECKING:
    import pyarrow as pa

OFFSET, FAILED = "_offset", "_failed"


class Part(NamedTuple):
    """A file with values of some rows from the first to the last; others may lie between them."""

    name: str
    start: int
    end: int


def write_part(
    place: Place,
    job: str,
    fragment: int,
    key: str,
    attempt: int,
    offsets: Any,
    failed: Any,
    values: "Sequence[pa.RecordBatch]",
) -> None:
    """Leave values by offset; the failed ones among them are null."""
    import pyarrow as pa

    start, end = int(offsets[0]), int(offsets[-1]) + 1
    name = f"{fragment}-{key}-{attempt}-{start}-{end}-{uuid.uuid4().hex[:8]}.arrow"
    schema = pa.schema(
        [pa.field(OFFSET, pa.int64()), pa.field(FAILED, pa.bool_()), *values[0].schema]
    )
    sink = pa.BufferOutputStream()
    at = 0
    with pa.ipc.new_file(sink, schema) as writer:
        for each in values:
            rows = slice(at, at + each.num_rows)
            columns = [pa.array(offsets[rows]), pa.array(failed[rows]), *each.columns]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            at += each.num_rows
    write_file(place, f"{FOLDER}/{job}/parts/{name}", sink.getvalue())


def find_parts(place: Place, job: str, fragment: int, key: str) -> list[Part]:
    """The parts of a fragment by their place; they may overlap."""
    found = []
    prefix = f"{fragment}-{key}-"
    for name in list_names(place, f"{FOLDER}/{job}/parts"):
        if name.startswith(prefix) and name.endswith(".arrow"):
            _, start, end, _ = name[len(prefix) :].split("-")
            found.append(Part(name, int(start), int(end)))
    return sorted(found, key=lambda part: (part.start, -part.end, part.name))


def read_part(place: Place, job: str, part: Part) -> "pa.Table":
    """The rows of a part."""
    import pyarrow as pa

    content = files.read(place, f"{FOLDER}/{job}/parts/{part.name}")
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()
