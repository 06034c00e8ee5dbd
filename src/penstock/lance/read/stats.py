"""Statistics of one version of a table: its live rows, bytes and fragments. Blocks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.lance.doors import lance
from penstock.lance.indexes import describe_indexes

# Fragments with fewer rows are worth compacting; LanceDB uses the same bound.
SMALL_ROWS = 100_000
# The files of so many fragments are looked at to measure a table.
MAX_FRAGMENTS = 2_000


class Lengths(msgspec.Struct):
    min: int
    max: int
    mean: int
    p25: int
    p50: int
    p75: int
    p99: int


class FragmentStats(msgspec.Struct):
    num_fragments: int
    num_small_fragments: int
    lengths: Lengths


class TableStats(msgspec.Struct):
    total_bytes: int
    num_rows: int
    num_indices: int
    fragment_stats: FragmentStats


def measure(dataset: "lance.LanceDataset") -> tuple[int, int]:
    """How many rows a version has, and about how many bytes its files have."""
    fragments = dataset.get_fragments()
    looked = fragments[:MAX_FRAGMENTS]
    size = sum(file.file_size_bytes or 0 for fragment in looked for file in fragment.metadata.files)
    return dataset.count_rows(), size * len(fragments) // max(1, len(looked))


def load_stats(dataset: "lance.LanceDataset") -> TableStats:
    """Count live data: without deleted rows and dropped columns."""
    lengths = [fragment.metadata.num_rows for fragment in dataset.get_fragments()]
    # Its type has exactly one field.
    fields: Any = dataset.stats.data_stats().fields
    total_bytes = sum(field.bytes_on_disk for field in fields)
    return TableStats(total_bytes, sum(lengths), len(describe_indexes(dataset)), summarise(lengths))


def summarise(lengths: Sequence[int]) -> FragmentStats:
    """How many rows the fragments have; all zero without any."""
    ordered = sorted(lengths) or [0]
    count = len(ordered)
    small = sum(length < SMALL_ROWS for length in lengths)
    quarters = (ordered[count * percent // 100] for percent in (25, 50, 75, 99))
    mean = sum(ordered) // count
    return FragmentStats(len(lengths), small, Lengths(ordered[0], ordered[-1], mean, *quarters))
