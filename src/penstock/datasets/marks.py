"""Watermarks of a column that a function fills: versions of its table to compare rows with.

A watermark says that in its version every row is fresh, but for those that a file lists. A row
whose inputs and values are today what they were then is as fresh as it was. All of it blocks.
"""

import contextlib
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.datasets import files
from penstock.datasets.columns import get_field, parse_path
from penstock.datasets.equal import as_ids, combine, rows_equal
from penstock.datasets.failures import translated
from penstock.datasets.lake import Place
from penstock.datasets.rowsets import RowSet, decode_row_set, make_row_set
from penstock.datasets.snapshot import describe_fragments, is_blob
from penstock.errors import (
    ColumnNotFound,
    InvalidRequest,
    InvalidTableState,
    NotFound,
)
from penstock.pipeline.plan.backfill import FragmentState, Watermark

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset

    from penstock.datasets.rowsets import Ids
    from penstock.pipeline.plan.masks import Mask

FOLDER = "_backfill"
# How much of a column is in memory at once, and how many rows at most.
STEP_BYTES, MAX_STEP = 16_000_000, 32_768


@dataclass(frozen=True, slots=True)
class Bound:
    """A function in its version, with the columns that it fills and reads."""

    columns: tuple[str, ...]
    inputs: tuple[str, ...]
    function: str


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """A watermark whose version is still there."""

    watermark: Watermark
    dataset: "LanceDataset"
    states: dict[int, FragmentState]
    unfilled: RowSet
    bound: Bound


def open_mark(
    dataset: "LanceDataset", place: Place, watermark: Watermark, bound: Bound
) -> Mark | str:
    """The version that a watermark speaks of, or why it cannot be used."""
    then = Bound(
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
        unfilled = make_row_set([])
        if watermark.unfilled is not None:
            unfilled = decode_row_set(files.read(place, f"{FOLDER}/{watermark.unfilled}"))
    except ColumnNotFound as error:
        return f"version {watermark.version} cannot be compared: {error.message}"
    except (FileNotFoundError, InvalidRequest, InvalidTableState, NotFound):
        return gone
    if len(unfilled) != watermark.unfilled_rows:
        return f"the list of rows that version {watermark.version} left is not whole"
    return Mark(watermark, opened, {state.id: state for state in states}, unfilled, then)


def transaction_of(dataset: "LanceDataset") -> str:
    """What tells a version from another of the same number; '' when that is not known."""
    with contextlib.suppress(OSError, ValueError):
        found = dataset.read_transaction(dataset.version)
        return "" if found is None else str(found.uuid)
    return ""


def is_in(dataset: "LanceDataset", ids: "Ids") -> "Mask":
    """Whether a version has each of the rows."""
    import numpy as np
    import pyarrow as pa

    if not len(ids):
        return np.zeros(0, bool)
    with translated():
        found = dataset._take_rows(pa.array(ids, pa.uint64()), columns=["_rowid"])
    return np.isin(ids, as_ids(found["_rowid"]))


def rows_unchanged(
    now: "tuple[LanceDataset, Sequence[str]]",
    then: "tuple[LanceDataset, Sequence[str]]",
    ids: "Ids",
    step: int,
) -> "Mask":
    """Whether the fields of each row, which both versions have, are the same in both."""
    import numpy as np

    same = np.ones(len(ids), bool)
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        for new, old in zip(now[1], then[1], strict=True):
            open_rows = np.flatnonzero(same[start : start + step])
            if len(open_rows):
                found = _equal(now[0], new, then[0], old, part[open_rows])
                same[start + open_rows] = found
    return same


def is_null(dataset: "LanceDataset", columns: Sequence[str], ids: "Ids", step: int) -> "Mask":
    """Whether every one of the columns is null, for each row."""
    import numpy as np

    found = np.ones(len(ids), bool)
    for start in range(0, len(ids), step):
        for name in columns:
            values = _read(dataset, name, ids[start : start + step])
            found[start : start + step] &= np.asarray(values.is_null())
    return found


def step_rows(dataset: "LanceDataset", fragments: Collection[int]) -> int:
    """How many rows of these fragments may be looked at together."""
    widest = 1.0
    for fragment in dataset.get_fragments():
        if fragment.fragment_id in fragments and fragment.physical_rows:
            size = sum(file.file_size_bytes or 0 for file in fragment.data_files())
            widest = max(widest, size / fragment.physical_rows)
    return max(16, min(MAX_STEP, int(STEP_BYTES / widest)))


def folder_of(binding: str, branch: str) -> str:
    """Where the lists of rows of a column lie; branches have lists of their own."""
    plain = binding if binding.isalnum() else hashlib.sha256(binding.encode()).hexdigest()[:32]
    return f"{plain}-{_brief(branch)}" if branch else plain


def tag_of(binding: str, branch: str) -> str:
    """The tag that keeps a watermark's version from being cleaned up."""
    name = f"penstock-backfill-{folder_of(binding, '')[:12]}"
    return f"{name}-{_brief(branch)}" if branch else name


def keep_version(dataset: "LanceDataset", tag: str, branch: str, version: int) -> None:
    """Move the tag to a version."""
    with translated():
        reference = (branch or None, version)
        if tag in dataset.tags.list():
            dataset.tags.update(tag, reference)
        else:
            dataset.tags.create(tag, reference)


def write_unfilled(place: Place, folder: str, name: str, rows: RowSet) -> str | None:
    """Store the list of rows that are not filled; None when there are none."""
    if not len(rows):
        return None
    files.write_new(place, f"{FOLDER}/{folder}/{name}", rows.encode())
    return f"{folder}/{name}"


def sweep_unfilled(place: Place, folder: str, kept: Collection[str | None]) -> None:
    """Remove the lists that no watermark names any more."""
    for entry in files.list_folder(place, f"{FOLDER}/{folder}"):
        if f"{folder}/{entry.name}" not in kept:
            files.remove(place, f"{FOLDER}/{folder}/{entry.name}")


def _equal(now: "LanceDataset", new: str, then: "LanceDataset", old: str, ids: "Ids") -> "Mask":
    import numpy as np

    left, right = _read(now, new, ids), _read(then, old, ids)
    if not is_blob(_field(now, new)):
        return rows_equal(left, right)
    # What is read is where the bytes lie, and how many there are.
    sizes = [np.asarray(_size(each)) for each in (left, right)]
    same: Mask = np.asarray(left.is_null()) == np.asarray(right.is_null())
    same &= (sizes[0] == sizes[1]) | np.asarray(left.is_null())
    for row in np.flatnonzero(same & np.asarray(left.is_valid()) & (sizes[0] > 0)):
        id = [int(ids[row])]
        with translated():
            a, b = now.take_blobs(new, ids=id)[0], then.take_blobs(old, ids=id)[0]
            same[row] = a is not None and b is not None and a.read() == b.read()
    return same


def _size(places: Any) -> Any:
    import pyarrow.compute as pc

    return pc.fill_null(pc.struct_field(places, "size"), 0)


def _read(dataset: "LanceDataset", path: str, ids: "Ids") -> "pa.Array":
    """A field of some rows, in the order of their ids."""
    import numpy as np
    import pyarrow as pa

    with translated():
        found = dataset._take_rows(
            pa.array(ids, pa.uint64()),
            columns={"v": _expression(dataset, path), "_rowid": "_rowid"},
        )
    if not np.array_equal(as_ids(found["_rowid"]), ids):
        raise InvalidTableState(f"version {dataset.version} lost some of its rows")
    return combine(found["v"])


def _expression(dataset: "LanceDataset", path: str) -> str:
    """How Lance is asked for a field; one inside a list is asked for with the whole list."""
    parts = parse_path(path)
    kind = dataset.schema.field(parts[0]).type
    taken = [parts[0]]
    for part in parts[1:]:
        index = kind.get_field_index(part) if hasattr(kind, "get_field_index") else -1
        if index < 0:
            break
        taken.append(part)
        kind = kind.field(index).type
    return ".".join(f"`{part}`" for part in taken)


def _field(dataset: "LanceDataset", path: str) -> Any:
    return get_field(dataset, path).lance


def _brief(branch: str) -> str:
    return hashlib.sha256(branch.encode()).hexdigest()[:8]
