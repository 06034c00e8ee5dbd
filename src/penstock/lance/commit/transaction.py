"""What tells a version from another of the same number. It blocks."""

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lance import LanceDataset


def transaction_of(dataset: "LanceDataset") -> str:
    """What tells a version from another of the same number; '' when that is not known."""
    with contextlib.suppress(OSError, ValueError):
        found = dataset.read_transaction(dataset.version)
        return "" if found is None else str(found.uuid)
    return ""
