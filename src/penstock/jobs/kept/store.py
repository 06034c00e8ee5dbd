"""The store of values that functions made, kept until they are in the table or view.

A store is a folder among those of jobs. It belongs to a column or a view and to one version of a
function, not to a job: a value is found by the id of its row and by a digest of what the function
was given, so whoever comes next may use it, wherever the row lies now. Every file has a name of its
own. All of it blocks.
"""

import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from msgspec import json

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER, list_names, write_file
from penstock.model.functions import Function

# How a store's folder is called, and its owner in there.
PREFIX, COLUMN, VIEW = "kept-", "column-", "view"
MAKER_CHARACTERS = 16
# The first columns of a part. Those that the function fills come after them, whatever their names.
KEY, INPUTS, FAILED = "__penstock_key", "__penstock_inputs", "__penstock_failed"
OURS = 3


@dataclass(frozen=True, slots=True)
class Store:
    """A store, as a job uses it."""

    place: Place
    folder: str
    job: str

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.folder}"

    @property
    def writer(self) -> str:
        return name_writer(self.job)


class Part(NamedTuple):
    """A file with values of rows from one key to another; others may lie between them."""

    name: str
    start: int
    end: int
    # The job that wrote it, as `name_writer` says it.
    writer: str


def name_store(owner: str, maker: str) -> str:
    """The folder of what one version of a function makes for an owner."""
    made_by = hashlib.sha256(maker.encode()).hexdigest()[:MAKER_CHARACTERS]
    return f"{PREFIX}{owner}-{made_by}"


def name_view_store(function: Function, kinds: pa.Schema, *, is_full: bool) -> str:
    """The same for a view; with other types the values are others.

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
    return name_store(VIEW, json.encode(what).decode())


def owner_of_column(binding: str, branch: str) -> str:
    """What a column on a branch is called as an owner."""
    return f"{COLUMN}{name_column(binding, branch)}"


def owner_of(folder: str) -> str | None:
    """Whose values a folder among those of jobs keeps; None when it is a job's."""
    return folder[len(PREFIX) :].rpartition("-")[0] if folder.startswith(PREFIX) else None


def name_column(binding: str, branch: str) -> str:
    """A column on a branch, as names of folders show it."""
    plain = binding if binding.isalnum() else hashlib.sha256(binding.encode()).hexdigest()[:32]
    return f"{plain}-{brief(branch)}" if branch else plain


def brief(branch: str) -> str:
    """A branch, in a few characters."""
    return hashlib.sha256(branch.encode()).hexdigest()[:8]


def name_writer(job: str) -> str:
    """A job, in a few characters."""
    return hashlib.sha256(job.encode()).hexdigest()[:16]


def make_table(keys: Any, inputs: Any, failed: Any, values: Sequence[pa.RecordBatch]) -> pa.Table:
    """Values with what they are found by; the failed ones among them are null."""
    made = pa.Table.from_batches(values)
    ours = [pa.array(keys), pa.array(inputs), pa.array(failed)]
    return pa.table([*ours, *made.columns], [KEY, INPUTS, FAILED, *made.schema.names])


def write_part(store: Store, table: pa.Table) -> str:
    """Keep values; returns the name of their file."""
    keys = table.column(0).to_numpy()
    name = f"{keys.min()}_{keys.max() + 1}_{store.writer}_{uuid.uuid4().hex[:8]}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:
        file.write_table(table)
    write_file(store.place, f"{store.path}/{name}", sink.getvalue())
    return name


def find_parts(place: Place, folder: str) -> list[Part]:
    """What is there; several may have the same rows."""
    found = []
    for name in list_names(place, f"{FOLDER}/{folder}"):
        if name.endswith(".arrow"):
            start, end, writer, _ = name.split("_")
            found.append(Part(name, int(start), int(end), writer))
    return sorted(found)


def read_part(store: Store, part: Part) -> pa.Table:
    """The rows of a part; raises FileNotFoundError when it is gone."""
    content = files.read(store.place, f"{store.path}/{part.name}")
    return pa.ipc.open_file(pa.py_buffer(content)).read_all()


def remove_parts(store: Store, names: Sequence[str]) -> None:
    for name in names:
        files.remove(store.place, f"{store.path}/{name}")


def remove_view_stores(place: Place) -> None:
    """Remove everything that is kept for a view: it is what it should be."""
    if place.is_local:
        names = set(list_names(place, FOLDER))
    else:
        names = {path.split("/")[1] for path, _ in files.list_below(place, FOLDER)}
    for name in sorted(names):
        if owner_of(name) == VIEW:
            folder = f"{FOLDER}/{name}"
            whole = Place(place.store, f"{place.key}/{folder}", f"{place.location}/{folder}")
            files.remove_all(whole)
    files.remove_if_empty(place, FOLDER)
