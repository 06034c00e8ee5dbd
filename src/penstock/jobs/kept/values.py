"""Values that functions of a view made, kept until a refresh of the view has succeeded.

They belong to the view and to one version of a function, not to a job: a value is found by the key
of its row and by a digest of what the function was given, so whoever comes next may use it, of
whatever job, and wherever the row lies now. Every file has a name of its own. All of it blocks.
"""

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import json

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names, write_file
from penstock.model.functions import Function

# Folders beside those of jobs, and swept like them when nobody has written there for long.
PREFIX = "kept-view-"
# Beside the columns that the function fills, whatever they are called.
KEY, INPUTS, FAILED = "__penstock_key", "__penstock_inputs", "__penstock_failed"


class Part(NamedTuple):
    """A file with values of rows from one key to another; others may lie between them."""

    name: str
    start: int
    end: int
    # Whose it is, as `name_writer` says it.
    writer: str


def name_store(function: Function, kinds: "pa.Schema", *, is_full: bool) -> str:
    """Where the values of a version of a function are; with other types they are others.

    A refresh that was asked to compute everything takes only what such a one has kept.
    """
    what = [
        function.name,
        function.version,
        function.sha256,
        function.inputs,
        function.outputs,
        str(kinds),
        is_full,
    ]
    return PREFIX + hashlib.sha256(json.encode(what)).hexdigest()[:24]


def name_writer(job: str) -> str:
    """A job, in a few characters."""
    return hashlib.sha256(job.encode()).hexdigest()[:16]


def make_table(keys: Any, inputs: Any, failed: Any, values: "Sequence[pa.RecordBatch]") -> Any:
    """Values with what they are found by; the failed ones among them are null."""
    made = pa.Table.from_batches(values)
    known = [(KEY, pa.array(keys)), (INPUTS, pa.array(inputs)), (FAILED, pa.array(failed))]
    return pa.table(dict([*known, *zip(made.schema.names, made.columns, strict=True)]))


def write_part(place: Place, store: str, writer: str, table: "pa.Table") -> str:
    """Keep values; returns the name of their file."""
    keys = table[KEY].to_numpy()
    name = f"{keys.min()}_{keys.max() + 1}_{writer}_{uuid.uuid4().hex[:8]}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    write_file(place, f"{FOLDER}/{store}/{name}", sink.getvalue())
    return name


def find_parts(place: Place, store: str) -> list[Part]:
    """What is there; several may have the same rows."""
    found = []
    for name in list_names(place, f"{FOLDER}/{store}"):
        if name.endswith(".arrow"):
            start, end, writer, _ = name.split("_")
            found.append(Part(name, int(start), int(end), writer))
    return sorted(found)


def read_part(place: Place, store: str, part: Part) -> "pa.Table | None":
    """The rows of a part; None when it is gone, because its values are in another one by now."""
    try:
        content = files.read(place, f"{FOLDER}/{store}/{part.name}")
    except FileNotFoundError:
        return None
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def remove_parts(place: Place, store: str, names: Sequence[str]) -> None:
    for name in names:
        files.remove(place, f"{FOLDER}/{store}/{name}")


def sweep_kept(place: Place) -> None:
    """Remove everything that is kept for a view: it is what it should be."""
    if place.is_local:
        names = set(list_names(place, FOLDER))
    else:
        names = {path.split("/")[1] for path, _ in files.list_below(place, FOLDER)}
    for name in sorted(names):
        if name.startswith(PREFIX):
            folder = f"{FOLDER}/{name}"
            whole = Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}")
            files.remove_all(whole)
    files.remove_if_empty(place, FOLDER)
