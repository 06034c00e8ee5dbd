"""A version's transaction id, which tells it from another version of the same number. Blocks."""

import contextlib

from lance import LanceDataset


def transaction_of(dataset: LanceDataset) -> str:
    """The transaction id of a version; '' when unknown."""
    with contextlib.suppress(OSError, ValueError):
        found = dataset.read_transaction(dataset.version)
        return "" if found is None else str(found.uuid)
    return ""
