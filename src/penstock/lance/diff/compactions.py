"""The fragments that compacted fragments come from: a compaction changes no values. Blocks.

Lance's transactions name the fragments that a compaction merged. If each of them was completely
filled, so is the result, and none of its rows has to be read.
"""

from collections.abc import Callable
from typing import Any

from lance import LanceDataset, LanceOperation

from penstock.lance.commit.transaction import read_transaction
from penstock.lance.diff.fragments import describe_files
from penstock.model.fragments import FragmentState

# How far back to look for compactions.
VERSIONS_BACK = 64


class Compactions:
    """The compactions among the last versions of a table."""

    def __init__(
        self,
        dataset: LanceDataset,
        order: str,
        ids: tuple[frozenset[int], frozenset[int]],
        is_whole: Callable[[FragmentState], bool],
    ) -> None:
        self._order = order
        self._ids = ids
        self._is_whole = is_whole
        self._old = read_compactions(dataset)
        self._known: dict[str, bool] = {}

    def were_whole(self, state: FragmentState) -> bool:
        """Whether a fragment was compacted from fragments whose rows were all fresh."""
        if not state.is_whole:
            return False
        made_by = state.target_files[0]
        if made_by not in self._known:
            old = self._old.get(made_by)
            # A new fragment has all columns in one file; a second file came later.
            is_plain = old is not None and _paths(state) <= {made_by}
            states = [self._describe(each) for each in old or ()] if is_plain else []
            self._known[made_by] = bool(states) and all(
                self._is_whole(each) or self.were_whole(each) for each in states
            )
        return self._known[made_by]

    def _describe(self, fragment: Any) -> FragmentState:
        dead = fragment.deletion_file.num_deleted_rows if fragment.deletion_file else 0
        return describe_files(
            fragment.id,
            fragment.physical_rows,
            fragment.physical_rows - (dead or 0),
            fragment.files,
            fragment.overlays,
            "",
            self._order,
            *self._ids,
        )


def read_compactions(dataset: LanceDataset) -> dict[str, list[Any]]:
    """The fragments that each compacted file was made from."""
    found: dict[str, list[Any]] = {}
    for version in range(dataset.version, max(0, dataset.version - VERSIONS_BACK), -1):
        try:
            transaction = read_transaction(dataset, version)
        except (OSError, ValueError):
            break
        operation = None if transaction is None else transaction.operation
        if isinstance(operation, LanceOperation.Rewrite):
            for group in operation.groups:
                for new in group.new_fragments:
                    for file in new.files:
                        found[str(file.path)] = list(group.old_fragments)
    return found


def _paths(state: FragmentState) -> set[str]:
    """The files that hold inputs; the first entry gives their order."""
    return {entry.rpartition(":")[0] for entry in state.input_files[1:]}
