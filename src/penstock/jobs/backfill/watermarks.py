"""Watermarks of a column that a function fills: versions of its table to compare rows with.

A watermark says that in its version every row is fresh, but for those that a file lists, with why
they are not. A row whose inputs and values are today what they were then is as fresh as it was. All
of it blocks.
"""

import base64
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from lance import LanceDataset
from lance.file import LanceFileReader

from penstock.errors import (
    ColumnNotFound,
    ConcurrentCommit,
    InvalidRequest,
    InvalidTableState,
    NotFound,
)
from penstock.jobs.backfill.left_rows import LeftRows, decode_left_rows
from penstock.jobs.backfill.plan import Watermark
from penstock.jobs.backfill.row_states import Codes, mark_left, pack_codes, unpack_codes
from penstock.jobs.engine.fragment_work import CODES_KEY, UNFILLED_KEY
from penstock.jobs.kept.store import brief, name_column
from penstock.lance.columns import computed
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.fragments import describe_fields, describe_fragments
from penstock.lance.diff.masks import Mask, pack, unpack
from penstock.lance.errors import translated
from penstock.lance.refs import OUR_TAGS
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.fragments import FragmentState

FOLDER = "_backfill"


@dataclass(frozen=True, slots=True)
class BoundFunction:
    """A function in its version, with the columns that it fills and reads."""

    columns: tuple[str, ...]
    inputs: tuple[str, ...]
    function: str
    binding: str = ""
    # The inputs that it was declared with, by the names of the request and of the lease; and their
    # fields, once they were seen.
    declared: tuple[tuple[str, ...], ...] = ()
    fields: str = ""


def follow(dataset: LanceDataset, bound: BoundFunction) -> BoundFunction:
    """The same columns and inputs by their names in this version; raises when they are gone.

    Anybody who commits can say that a column has other inputs: only other names are followed.
    """
    if not bound.binding:
        return bound
    found = computed.find_bound(dataset.schema, bound.binding, bound.columns)
    fields, _, _ = describe_fields(dataset, (), found.inputs)
    if found.inputs not in bound.declared and fields != bound.fields:
        raise ConcurrentCommit(
            f"the inputs of column {', '.join(bound.columns)} are not those of its declaration",
            detail="request the backfill again",
        )
    return replace(bound, columns=found.columns, inputs=found.inputs, fields=bound.fields or fields)


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A watermark whose version is still there."""

    watermark: Watermark
    dataset: LanceDataset
    states: dict[int, FragmentState]
    left: LeftRows
    bound: BoundFunction


def open_mark(
    dataset: LanceDataset, place: Place, watermark: Watermark, bound: BoundFunction
) -> Mark | str:
    """The version that a watermark speaks of, or why it cannot be used."""
    then = BoundFunction(
        bound.columns if watermark.columns is None else watermark.columns,
        bound.inputs if watermark.inputs is None else watermark.inputs,
        watermark.function or "",
    )
    gone = f"version {watermark.version}, up to which the column was filled, is gone"
    if (len(then.columns), len(then.inputs)) != (len(bound.columns), len(bound.inputs)):
        return f"version {watermark.version} was filled from other columns"
    try:
        with translated():
            opened = dataset.checkout_version((watermark.branch or None, watermark.version))
        if watermark.transaction not in ("", transaction_of(opened)):
            return gone
        states = describe_fragments(opened, then.columns, then.inputs)
        left = LeftRows({})
        if watermark.unfilled is not None:
            left = decode_left_rows(files.read(place, f"{FOLDER}/{watermark.unfilled}"))
    except ColumnNotFound as error:
        return f"version {watermark.version} cannot be compared: {error.message}"
    except (FileNotFoundError, InvalidRequest, InvalidTableState, NotFound):
        return gone
    if len(left) != watermark.unfilled_rows:
        return f"the list of rows that version {watermark.version} left is not whole"
    return Mark(watermark, opened, {state.id: state for state in states}, left, then)


def make_mark(
    dataset: LanceDataset,
    branch: str,
    bound: BoundFunction,
    states: Collection[FragmentState],
    left: LeftRows,
) -> Mark:
    """A version that no watermark speaks of, with what is known of it."""
    watermark = Watermark(dataset.version, bound.function, None, len(left), branch)
    return Mark(watermark, dataset, {state.id: state for state in states}, left, bound)


def describe_left(left: Mask | None, told: Codes, failed: Collection[int]) -> dict[str, str]:
    """What a file's metadata say of its rows: which were left out, and why, and which failed."""
    mask = np.zeros(len(told), bool) if left is None else left.copy()
    codes = mark_left(mask, told, failed)
    mask[list(failed)] = True
    shown = {UNFILLED_KEY: pack(mask), CODES_KEY: pack_codes(codes)}
    return {key.decode(): base64.b64encode(data).decode() for key, data in shown.items()}


def read_codes(dataset: LanceDataset, location: Location, state: FragmentState) -> Codes:
    """The codes of a fragment's rows, as its file tells them, for the function that it is of."""
    name = state.target_files[0]
    with translated():
        fragment = dataset.get_fragment(state.id)
        held = fragment.data_files() if fragment is not None else []
        base = next(file.base_id for file in held if file.path == name)
        folder = f"{location.uri}/{location.data_folder}"
        if base is not None:
            # The file of another branch, or of a table that this one was copied from.
            root = dataset.base_paths()[base]
            folder = f"{_uri_of(root.path, location)}/data" if root.is_dataset_root else root.path
        reader = LanceFileReader(f"{folder}/{name}", storage_options=dict(location.options) or None)
        stored = reader.metadata().schema.metadata or {}
    left = unpack(base64.b64decode(stored.get(UNFILLED_KEY, b"")), state.physical_rows)
    told = base64.b64decode(stored.get(CODES_KEY, b""))
    return mark_left(left, unpack_codes(told, state.physical_rows) if told else None)


def tag_of(binding: str, branch: str) -> str:
    """The tag that keeps a watermark's version from being cleaned up."""
    name = f"{OUR_TAGS}{name_column(binding, '')[:12]}"
    return f"{name}-{brief(branch)}" if branch else name


def write_left(place: Place, folder: str, name: str, rows: LeftRows) -> str | None:
    """Store the list of rows that are not fresh; None when there are none."""
    if not len(rows):
        return None
    files.write_new(place, f"{FOLDER}/{folder}/{name}", rows.encode())
    return f"{folder}/{name}"


def sweep_left(place: Place, folder: str, kept: Collection[str | None], before: int) -> None:
    """Remove the lists of versions before this one that no watermark names any more.

    A later attempt may have come so far that its own list is there.
    """
    for entry in files.list_folder(place, f"{FOLDER}/{folder}"):
        version = entry.name.partition("-")[0]
        is_old = not version.isdecimal() or int(version) < before
        if is_old and f"{folder}/{entry.name}" not in kept:
            files.remove(place, f"{FOLDER}/{folder}/{entry.name}")


def _uri_of(path: str, location: Location) -> str:
    # Lance keeps the way to a base without its scheme.
    scheme, found, _ = location.uri.partition("://")
    return path if not found or "://" in path else f"{scheme}://{path}"
