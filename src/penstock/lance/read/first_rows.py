"""Read a few rows by their place alone: from the first fragment, without a plan and a scan.

This answers the most common first question about a table at half the cost of a scan.
"""

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from penstock.lance.diff.fragments import has_blobs, leaf_ids
from penstock.lance.doors import lance, pa

MAX_ROWS = 100
# Larger rows are scanned, in batches of bounded size.
MAX_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class _FirstFragment:
    """The first fragment: its number, its row count, and the size of a row."""

    id: int
    rows: int
    row_bytes: float


# A handle never changes. Only the number is kept, because a fragment would keep its handle alive.
_known: "WeakKeyDictionary[lance.LanceDataset, _FirstFragment | None]" = WeakKeyDictionary()


def take_first(
    dataset: "lance.LanceDataset", columns: list[str] | None, offset: int, count: int
) -> "pa.Table | None":
    """The rows at these places; None when they have to be scanned."""
    if not 0 < count <= MAX_ROWS:
        return None
    if dataset not in _known:
        _known[dataset] = _look_up(dataset)
    first = _known[dataset]
    if first is None or offset + count > first.rows or count * first.row_bytes > MAX_BYTES:
        return None
    if columns is not None and not _are_plain(columns, dataset.schema.names):
        return None
    fragment = dataset.get_fragment(first.id)
    assert fragment is not None
    return fragment.take(list(range(offset, offset + count)), columns)


def _look_up(dataset: "lance.LanceDataset") -> _FirstFragment | None:
    """None without rows, or with deleted rows, blobs, or columns that no file has yet."""
    fragment = next(iter(dataset.get_fragments()), None)
    if fragment is None or fragment.num_deletions or not fragment.physical_rows:
        return None
    fields, files = dataset.lance_schema.fields(), fragment.data_files()
    written = {id for file in files for id in file.fields}
    if any(map(has_blobs, fields)) or not {id for f in fields for id in leaf_ids(f)} <= written:
        return None
    sizes = [file.file_size_bytes for file in files]
    if not all(sizes):
        return None
    rows = fragment.physical_rows
    return _FirstFragment(fragment.fragment_id, rows, sum(size or 0 for size in sizes) / rows)


def _are_plain(columns: list[str], names: list[str]) -> bool:
    """Whether the columns are some of these, each once."""
    return 0 < len(columns) == len(set(columns)) and set(columns) <= set(names)
