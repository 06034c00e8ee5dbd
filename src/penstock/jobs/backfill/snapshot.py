"""What a backfill by an expression has to know of a version before it is planned. It blocks."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.jobs.backfill.plan import Snapshot, Watermark
from penstock.lance.columns.fields import get_field, show_path
from penstock.lance.diff.fragments import leaf_ids, show_files
from penstock.lance.errors import translated
from penstock.model.fragments import FragmentState

if TYPE_CHECKING:
    from lance import LanceDataset, LanceFragment


def take_snapshot(
    dataset: "LanceDataset",
    column: str,
    inputs: Sequence[str],
    where: str | None,
    watermark: Watermark | None,
) -> Snapshot:
    """Describe the version of a table that is open; the inputs are field paths."""
    targets = set(leaf_ids(get_field(dataset, show_path((column,))).lance))
    wanted = {id for name in inputs for id in leaf_ids(get_field(dataset, name).lance)}
    fragments = dataset.get_fragments()
    counts = None if where is None else _count_matches(dataset, where)
    return Snapshot(
        dataset.version,
        column,
        tuple(_describe(fragment, targets, wanted, counts) for fragment in fragments),
        watermark,
    )


def _describe(
    fragment: "LanceFragment",
    targets: set[int],
    inputs: set[int],
    counts: Counter[int] | None,
) -> FragmentState:
    rows = fragment.physical_rows - fragment.num_deletions
    files = fragment.data_files()
    return FragmentState(
        fragment.fragment_id,
        fragment.physical_rows,
        rows,
        rows if counts is None else counts[fragment.fragment_id],
        show_files(files, inputs),
        tuple(sorted(str(file.path) for file in files if targets & set(file.fields))),
        show_files(files, {id for file in files for id in file.fields} - targets),
    )


def _count_matches(dataset: "LanceDataset", where: str) -> Counter[int]:
    """How many rows of each fragment match."""
    counts: Counter[int] = Counter()
    with translated():
        scanner = dataset.scanner(columns=[], filter=where, with_row_address=True)
        for batch in scanner.to_batches():
            fragments = pc.shift_right(batch.column("_rowaddr"), 32)
            for entry in pc.value_counts(fragments).to_pylist():
                counts[entry["values"]] += entry["counts"]
    return counts
