"""Write a new file of one or several columns for a fragment, as values come. Blocks.

The file has values for every physical row of the fragment: null where a row was deleted, and old
values where nothing was computed. Lance does not check its length when it is committed, so it is
checked here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from lance import BlobDescriptorArrayBuilder, LanceDataset, LanceFragment
from lance.file import LanceFileWriter
from lance.schema import LanceSchema

from penstock.errors import InvalidTableState
from penstock.lance.columns.fields import get_field, show_path
from penstock.lance.commit.replacement import ColumnFile, Computation
from penstock.lance.diff.fragments import BLOB_KEY, EXTENSION_KEY, all_ids, is_blob, leaf_ids
from penstock.lance.errors import translated
from penstock.lance.read.scans import (
    BATCH_BYTES,
    BATCH_ROWS,
    offsets_of,
    scan_expressions,
    scan_rows,
)
from penstock.lance.session.remote import Location
from penstock.lance.write.layout import align_batch


class ValuePiece(NamedTuple):
    """Values of some rows, at least one, by ascending offset."""

    offsets: Any
    values: pa.RecordBatch


class FilledColumn(NamedTuple):
    """A column to fill: the type of its values, and how a file stores them."""

    name: str
    kind: pa.DataType
    stored: pa.Field
    ids: tuple[int, ...]


def get_targets(dataset: LanceDataset, columns: Sequence[str]) -> tuple[FilledColumn, ...]:
    """The columns to fill."""
    return tuple(_get_target(dataset, column) for column in columns)


def write_column_file(
    dataset: LanceDataset,
    location: Location,
    fragment: LanceFragment,
    targets: Sequence[FilledColumn],
    pieces: Iterator[ValuePiece],
    name: str,
    *,
    keep: bool = False,
    metadata: Callable[[], Mapping[str, str]] = dict,
    folder: str = "",
) -> ColumnFile:
    """Write the pieces into a file of that name; `keep` keeps old values in the other rows.

    The metadata is computed after all pieces are written. On a local disk the file stays in
    `folder` until it is complete, so that a killed writer's leftovers are swept with it.
    """
    version = dataset.data_storage_version
    schema = pa.schema([target.stored for target in targets])
    kinds = pa.schema([pa.field(target.name, target.kind) for target in targets])
    old = _old(dataset, fragment, kinds) if keep else None
    batches = fill_rows(pieces, old, fragment, kinds)
    with translated():
        writer = LanceFileWriter(
            f"{location.uri}/{folder or location.data_folder}/{name}",
            schema,
            version=version,
            storage_options=dict(location.options) or None,
        )
    # Not a `with`, which would complete the file even when the computation fails.
    for batch in batches:
        with translated():
            writer.write_batch(store_batch(batch, schema))
    with translated():
        for key, value in metadata().items():
            writer.add_schema_metadata(key, value)
        written = writer.close() or 0
    if written != fragment.physical_rows:
        raise InvalidTableState(
            f"the new file of fragment {fragment.fragment_id} has {written} rows, and the fragment "
            f"has {fragment.physical_rows}"
        )
    major, minor = (int(part) for part in version.split("."))
    ids = tuple(id for target in targets for id in target.ids)
    size = writer.size_bytes or 0
    return ColumnFile(name, ids, tuple(range(len(ids))), major, minor, size, written)


def fill_rows(
    pieces: Iterator[ValuePiece],
    old: Iterator[ValuePiece] | None,
    fragment: LanceFragment,
    kinds: pa.Schema,
    batch_bytes: int = BATCH_BYTES,
) -> Iterator[pa.RecordBatch]:
    """All physical rows of a fragment: the pieces, with old values or nulls between them."""
    step = _step_rows(kinds, batch_bytes)
    if old is None:
        return _with_gaps(pieces, fragment, kinds, step)
    return _over_old(pieces, old, fragment, kinds, step)


def compute_pieces(
    dataset: LanceDataset, fragment: LanceFragment, target: FilledColumn, what: Computation
) -> Iterator[ValuePiece]:
    """The values of an expression, for the rows that it is computed for."""
    columns = {target.name: what.expression}
    for batch in scan_expressions(dataset, fragment, columns, what.where):
        if batch.num_rows:
            values = _cast(batch.column(target.name), target.kind)
            yield ValuePiece(offsets_of(batch), pa.record_batch([values], [target.name]))


def get_fragment(dataset: LanceDataset, id: int) -> LanceFragment:
    fragment = dataset.get_fragment(id)
    if fragment is None:
        raise InvalidTableState(f"version {dataset.version} has no fragment {id}")
    return fragment


def get_new_targets(
    dataset: LanceDataset, schema: LanceSchema, columns: Sequence[str]
) -> tuple[FilledColumn, ...]:
    """Columns of a schema that the table does not have yet."""
    fields, arrow = {each.name(): each for each in schema.fields()}, schema.to_pyarrow()
    return tuple(_to_target(dataset, fields[name], arrow.field(name)) for name in columns)


def _get_target(dataset: LanceDataset, column: str) -> FilledColumn:
    field = get_field(dataset, show_path((column,))).lance
    return _to_target(dataset, field, dataset.schema.field(column))


def _to_target(dataset: LanceDataset, field: Any, arrow: "pa.Field[Any]") -> FilledColumn:
    column = arrow.name
    version = tuple(int(part) for part in dataset.data_storage_version.split("."))
    if is_blob(field) and version >= (2, 2):
        # A file needs the layout that Lance itself writes for such values.
        return FilledColumn(column, pa.large_binary(), _blob_field(column), (field.id(),))
    stored = pa.field(column, arrow.type)
    if is_blob(field):
        stored = stored.with_metadata({BLOB_KEY: "true"})
    # Since 2.1, files only have columns for innermost fields.
    ids = leaf_ids(field) if version >= (2, 1) else all_ids(field)
    return FilledColumn(column, arrow.type, stored, tuple(ids))


def _blob_field(name: str) -> pa.Field:
    field: pa.Field = BlobDescriptorArrayBuilder(name).field
    return field


def store_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The values in the form in which the file stores them, readable by Lance."""
    arrays = [
        _to_blobs(values, field) if _is_prepared(field) else values
        for values, field in zip(batch.columns, schema, strict=True)
    ]
    return align_batch(pa.record_batch(arrays, schema=schema))


def _is_prepared(field: pa.Field) -> bool:
    return bool(field.metadata) and EXTENSION_KEY.encode() in field.metadata


def _to_blobs(values: pa.Array, field: pa.Field) -> pa.Array:
    """Values stored in the file itself, which is Lance's kind 0."""
    count = len(values)
    parts = {
        "kind": pa.array(np.zeros(count, np.uint8)),
        "data": values,
    }
    arrays = [parts.get(f.name) for f in field.type]
    filled = [
        pa.nulls(count, f.type) if array is None else array
        for array, f in zip(arrays, field.type, strict=True)
    ]
    return pa.StructArray.from_arrays(filled, fields=list(field.type), mask=values.is_null())


def _old(dataset: LanceDataset, fragment: LanceFragment, kinds: pa.Schema) -> Iterator[ValuePiece]:
    paths = [show_path((name,)) for name in kinds.names]
    for batch in scan_rows(dataset, fragment, paths):
        values = [_cast(batch.column(n), field.type) for n, field in enumerate(kinds)]
        yield ValuePiece(offsets_of(batch), pa.record_batch(values, schema=kinds))


def _with_gaps(
    pieces: Iterator[ValuePiece], fragment: LanceFragment, kinds: pa.Schema, step: int
) -> Iterator[pa.RecordBatch]:
    """The values at their places, with nulls between them."""
    at = 0
    for piece in pieces:
        yield from _nulls(int(piece.offsets[0]) - at, kinds, step)
        yield from _scatter(piece, kinds, step)
        at = int(piece.offsets[-1]) + 1
    yield from _nulls(fragment.physical_rows - at, kinds, step)


def _over_old(
    pieces: Iterator[ValuePiece],
    old: Iterator[ValuePiece],
    fragment: LanceFragment,
    kinds: pa.Schema,
    step: int,
) -> Iterator[pa.RecordBatch]:
    """Old values, overwritten by new ones at their places, as far as both are known."""
    before, coming = Pieces(old), Pieces(pieces)
    at = 0
    while (known := before.end) is not None:
        end = min(known, coming.end or known, before.start + step)
        taken = [*before.below(end), *coming.below(end)]
        start = min(int(piece.offsets[0]) for piece in taken)
        yield from _nulls(start - at, kinds, step)
        at = end
        where_from = np.full(end - start, -1, np.int64)
        count = 0
        # New values come last, so they win.
        for piece in taken:
            where_from[piece.offsets - start] = count + np.arange(len(piece.offsets))
            count += len(piece.offsets)
        if len(taken) == 1 and count == end - start:
            yield taken[0].values
            continue
        both = pa.concat_batches([piece.values for piece in taken])
        yield both.take(pa.array(where_from, mask=where_from < 0))
    if coming.end is not None:
        raise InvalidTableState(f"values for deleted rows of fragment {fragment.fragment_id}")
    yield from _nulls(fragment.physical_rows - at, kinds, step)


class Pieces:
    """Pieces in order, which can be cut at an offset."""

    def __init__(self, pieces: Iterator[ValuePiece]) -> None:
        self._pieces = pieces
        self._rest: ValuePiece | None = None

    @property
    def start(self) -> int:
        """Where the next piece begins; there must be one."""
        assert self._rest is not None
        return int(self._rest.offsets[0])

    @property
    def end(self) -> int | None:
        """Where the next piece ends; None when there is none."""
        if self._rest is None:
            self._rest = next(self._pieces, None)
        return None if self._rest is None else int(self._rest.offsets[-1]) + 1

    def below(self, end: int) -> Iterator[ValuePiece]:
        """The pieces before an offset."""
        while self.end is not None:
            piece = self._rest
            assert piece is not None
            cut = int(np.searchsorted(piece.offsets, end))
            self._rest = None
            if cut < len(piece.offsets):
                self._rest = ValuePiece(piece.offsets[cut:], piece.values.slice(cut))
            if cut:
                yield ValuePiece(piece.offsets[:cut], piece.values.slice(0, cut))
            if self._rest is not None:
                return


def _nulls(count: int, kinds: pa.Schema, step: int) -> Iterator[pa.RecordBatch]:
    while count > 0:
        size = min(count, step)
        yield pa.record_batch([pa.nulls(size, field.type) for field in kinds], schema=kinds)
        count -= size


def _scatter(piece: ValuePiece, kinds: pa.Schema, step: int) -> Iterator[pa.RecordBatch]:
    """The values at their offsets, with null in between; there may be far more nulls."""
    offsets, values = piece
    first, end = int(offsets[0]), int(offsets[-1]) + 1
    if values.num_rows == end - first:
        yield values
        return
    for at in range(first, end, step):
        length = min(step, end - at)
        start, stop = np.searchsorted(offsets, [at, at + length]).tolist()
        if start == stop:
            yield from _nulls(length, kinds, step)
            continue
        where_from = np.full(length, -1, np.int64)
        where_from[offsets[start:stop] - at] = np.arange(start, stop)
        yield values.take(pa.array(where_from, mask=where_from < 0))


def _step_rows(kinds: pa.Schema, batch_bytes: int) -> int:
    """How many rows to build at once; vectors take space even where they are null."""
    width = sum(_width(field.type) for field in kinds)
    return max(1, min(BATCH_ROWS, batch_bytes // max(1, width)))


def _width(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    if pa.types.is_struct(kind):
        return sum(_width(field.type) for field in kind)
    if pa.types.is_primitive(kind) or pa.types.is_fixed_size_binary(kind):
        return -(-int(kind.bit_width) // 8)
    return 8


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)
