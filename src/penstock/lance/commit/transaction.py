"""The transactions of versions, as the table keeps them. Everything here blocks."""

import contextlib
from typing import Any

from penstock.lance.doors import lance


def read_transaction(dataset: "lance.LanceDataset", version: int) -> Any:
    """The transaction of a version, None when it has none; raises OSError or ValueError when the
    version is gone."""
    # pylance 14 fails to make a transaction that rewrote an index, as a compaction does: it gives
    # two of the five values that this class wants.
    made: Any = lance.LanceOperation.RewrittenIndex.__init__
    made.__defaults__ = ("", b"", 0)
    return dataset.read_transaction(version)


def transaction_of(dataset: "lance.LanceDataset") -> str:
    """The id that tells a version from another one of the same number; '' when unknown."""
    with contextlib.suppress(OSError, ValueError):
        found = read_transaction(dataset, dataset.version)
        return "" if found is None else str(found.uuid)
    return ""
