"""A new file of one column for a fragment, and the commit that puts such files into a table.

The file has a value for every physical row of the fragment: null where a row was deleted, and the
old value where `where` did not match. Lance does not check its length when it is committed, so it
is checked here. All of it blocks.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.datasets.columns import get_field, show_path
from penstock.datasets.failures import translated
from penstock.datasets.remote import Location
from penstock.datasets.snapshot import leaf_ids
from penstock.errors import InvalidTableState, OutcomeUnknown, PenstockError

if TYPE_CHECKING:
    import pyarrow as pa
    from lance import LanceDataset, LanceFragment

OFFSET_BITS = 0xFFFF_FFFF
BATCH_ROWS = 65_536
JOB_PROPERTY, ATTEMPT_PROPERTY, ROWS_PROPERTY = "penstock.job", "penstock.attempt", "penstock.rows"


class Computation(Struct, frozen=True):
    """What is computed for a column."""

    column: str
    expression: str
    where: str | None = None
    # The expression reads no column.
    is_constant: bool = False


class ColumnFile(Struct, frozen=True):
    """A finished file of a column, as a commit names it."""

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    major: int
    minor: int
    size_bytes: int
    rows: int


def write_column_file(
    dataset: "LanceDataset", location: Location, fragment_id: int, what: Computation, name: str
) -> tuple[ColumnFile, int]:
    """Compute the column for a fragment into a file of that name; also returns how many rows."""
    import pyarrow as pa
    from lance.file import LanceFileWriter

    fragment = dataset.get_fragment(fragment_id)
    if fragment is None:
        raise InvalidTableState(f"version {dataset.version} has no fragment {fragment_id}")
    column = dataset.schema.field(what.column)
    version = dataset.data_storage_version
    computed = 0
    with translated():
        writer = LanceFileWriter(
            f"{location.uri}/{location.data_folder}/{name}",
            pa.schema([pa.field(column.name, column.type)]),
            version=version,
            storage_options=dict(location.options) or None,
        )
        # Not a `with`: that would complete the file even when the computation fails.
        for values, count in _compute(dataset, fragment, what, column.type):
            computed += count
            writer.write_batch(pa.record_batch([values], [column.name]))
        written = writer.close() or 0
    if written != fragment.physical_rows:
        raise InvalidTableState(
            f"the new file of fragment {fragment_id} has {written} rows, and the fragment has "
            f"{fragment.physical_rows}"
        )
    major, minor = (int(part) for part in version.split("."))
    field = get_field(dataset, show_path((what.column,))).lance
    # Since 2.1 files have columns for innermost fields only.
    ids = leaf_ids(field) if (major, minor) >= (2, 1) else _all_ids(field)
    size = writer.size_bytes or 0
    return ColumnFile(
        name, tuple(ids), tuple(range(len(ids))), major, minor, size, written
    ), computed


def commit_files(
    dataset: "LanceDataset", files: Mapping[int, ColumnFile], properties: Mapping[str, str]
) -> int:
    """Put files into the fragments of the newest version, which is open; returns the new one.

    Raises ConcurrentCommit when somebody changed one of the fragments or the schema meanwhile.
    """
    from lance import LanceDataset, LanceOperation, Transaction
    from lance.fragment import DataFile

    groups = []
    for id, file in files.items():
        fragment = dataset.get_fragment(id)
        if fragment is None or fragment.physical_rows != file.rows:
            raise InvalidTableState(f"{file.path} does not have the length of fragment {id}")
        new = DataFile(
            file.path,
            list(file.fields),
            list(file.column_indices),
            file.major,
            file.minor,
            file.size_bytes,
        )
        groups.append(LanceOperation.DataReplacementGroup(id, new))
    transaction = Transaction(
        dataset.version,
        LanceOperation.DataReplacement(groups),
        transaction_properties=dict(properties),
    )
    try:
        with translated():
            return LanceDataset.commit(dataset, transaction).version
    except PenstockError as error:
        # Lance could not ask whether its commit went in: only the table itself can tell.
        if "unknown" in error.message and "ommit" in error.message:
            raise OutcomeUnknown(error.message) from error
        raise


def find_commits(dataset: "LanceDataset", job: str, back: int) -> list[tuple[int, int]]:
    """The versions among the last few that a job committed, and how many rows each filled."""
    found = []
    for version in range(dataset.version, max(0, dataset.version - back), -1):
        try:
            transaction = dataset.read_transaction(version)
        except (OSError, ValueError):
            # Versions that are gone come before everything that still counts.
            break
        properties = (transaction.transaction_properties if transaction else None) or {}
        if properties.get(JOB_PROPERTY) == job:
            found.append((version, int(properties.get(ROWS_PROPERTY, 0))))
    return found


def _compute(
    dataset: "LanceDataset", fragment: "LanceFragment", what: Computation, kind: "pa.DataType"
) -> "Iterator[tuple[pa.Array, int]]":
    """The values of all physical rows in order, in parts, and how many of them were computed."""
    if what.where is None:
        return _compute_all(dataset, fragment, what, kind)
    return _compute_some(dataset, fragment, what, kind)


def _compute_all(
    dataset: "LanceDataset", fragment: "LanceFragment", what: Computation, kind: "pa.DataType"
) -> "Iterator[tuple[pa.Array, int]]":
    import pyarrow as pa

    has_gaps = fragment.num_deletions > 0
    at = 0
    scanner = dataset.scanner(
        columns={what.column: what.expression},
        fragments=[fragment],
        # Lance does not scan for constants alone.
        with_row_address=has_gaps or what.is_constant,
        batch_size=BATCH_ROWS,
        scan_in_order=True,
    )
    for batch in scanner.to_batches():
        values = _cast(batch.column(what.column), kind)
        count = len(values)
        if has_gaps and count:
            offsets = _offsets(batch)
            end = int(offsets[-1]) + 1
            values = _scatter(values, offsets - at, end - at)
            at = end
        if len(values):
            yield values, count
    if has_gaps and at < fragment.physical_rows:
        yield pa.nulls(fragment.physical_rows - at, kind), 0


def _compute_some(
    dataset: "LanceDataset", fragment: "LanceFragment", what: Computation, kind: "pa.DataType"
) -> "Iterator[tuple[pa.Array, int]]":
    """Old values, and new ones where `where` matches; the expression sees only those rows."""
    import numpy as np
    import pyarrow as pa

    def scan(column: str, where: str | None) -> "tuple[pa.Array, np.ndarray[Any, Any]]":
        found = dataset.scanner(
            columns={what.column: column},
            filter=where,
            fragments=[fragment],
            with_row_address=True,
            batch_size=BATCH_ROWS,
            scan_in_order=True,
        ).to_table()
        return _cast(found[what.column].combine_chunks(), kind), _offsets(found)

    quoted = "`" + what.column.replace("`", "``") + "`"
    new, new_at = scan(what.expression, what.where)
    old, old_at = scan(quoted, None)
    where_from = np.full(fragment.physical_rows, -1, np.int64)
    where_from[old_at] = np.arange(len(old))
    where_from[new_at] = len(old) + np.arange(len(new))
    taken = pa.array(where_from, mask=where_from < 0)
    yield pa.concat_arrays([old, new]).take(taken), len(new)


def _offsets(batch: "pa.RecordBatch | pa.Table") -> Any:
    """The place of each row within its fragment."""
    import numpy as np

    addresses = np.asarray(batch.column("_rowaddr"))
    return (addresses & np.uint64(OFFSET_BITS)).astype(np.int64)


def _scatter(values: "pa.Array", offsets: Any, length: int) -> "pa.Array":
    """The values at their offsets, and null in between."""
    import numpy as np
    import pyarrow as pa

    if len(values) == length:
        return values
    where_from = np.full(length, -1, np.int64)
    where_from[offsets] = np.arange(len(values))
    return values.take(pa.array(where_from, mask=where_from < 0))


def _cast(values: "pa.Array", kind: "pa.DataType") -> "pa.Array":
    return values if values.type == kind else values.cast(kind)


def _all_ids(field: Any) -> list[int]:
    return [field.id(), *(id for child in field.children() for id in _all_ids(child))]
