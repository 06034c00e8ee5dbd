"""Compaction: small fragments, and those with deleted rows, become large ones. It blocks.

No value changes, and rows keep their ids. It goes piece by piece, a commit for each, so that
somebody who writes meanwhile is in the way of one piece only.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from penstock.lance.doors import lance, optimize

# What a fragment should have: so many rows, in files of about so many bytes.
TARGET_ROWS, TARGET_BYTES = 1_048_576, 512 * 1024 * 1024
# A fragment with this share of deleted rows is written anew, however large it is.
DELETED_SHARE = 0.1
# What a scan holds in memory.
BATCH_BYTES, BUFFER_BYTES = 4 * 1024 * 1024, 32 * 1024 * 1024
MAX_BATCH_ROWS = 8_192


@dataclass(frozen=True, slots=True)
class FragmentSize:
    """How large a fragment is."""

    id: int
    rows: int
    deleted: int
    bytes: int

    @property
    def deleted_share(self) -> float:
        return self.deleted / max(1, self.rows + self.deleted)


@dataclass(frozen=True, slots=True)
class Piece:
    """Fragments that become others in one commit."""

    dataset: "lance.LanceDataset"
    task: Any
    fragments: int


def measure_fragments(dataset: "lance.LanceDataset") -> list[FragmentSize]:
    """The fragments of a version, in order."""
    found = []
    for fragment in dataset.get_fragments():
        told = fragment.metadata
        size = sum(file.file_size_bytes or 0 for file in told.files)
        rows = told.num_rows
        found.append(FragmentSize(told.id, rows, told.physical_rows - rows, size))
    return found


def find_target_rows(sizes: Collection[FragmentSize]) -> int:
    """How many rows a fragment should have, so that its files are of about the target's size."""
    return max(1, min(TARGET_ROWS, TARGET_BYTES // max(1, _row_bytes(sizes))))


def plan_pieces(
    dataset: "lance.LanceDataset",
    sizes: Collection[FragmentSize],
    deleted_share: float = DELETED_SHARE,
    excluded: Collection[int] = (),
) -> list[Piece]:
    """What to compact in a version, in pieces that can be committed one by one."""
    batch_rows = max(1, min(MAX_BATCH_ROWS, BATCH_BYTES // max(1, _row_bytes(sizes))))
    options: Any = {
        "target_rows_per_fragment": find_target_rows(sizes),
        "materialize_deletions_threshold": deleted_share,
        "excluded_fragment_ids": list(excluded),
        # Other work on data goes on meanwhile.
        "num_threads": 1,
        "batch_size": batch_rows,
        "io_buffer_size": BUFFER_BYTES,
    }
    plan = optimize.Compaction.plan(dataset, options)
    return [Piece(dataset, task, len(task.fragments)) for task in plan.tasks]


def compact_piece(piece: Piece) -> int:
    """Write and commit a piece; returns how many fragments it became."""
    done = piece.task.execute(piece.dataset)
    return int(optimize.Compaction.commit(piece.dataset, [done]).fragments_added)


def _row_bytes(sizes: Collection[FragmentSize]) -> int:
    rows = sum(each.rows + each.deleted for each in sizes)
    return sum(each.bytes for each in sizes) // max(1, rows)
