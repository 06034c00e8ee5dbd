"""The bases of a Lance version: other folders whose files it counts as its own.

Lance reads them with the reader's credentials, so a manifest could show its owner any table that
the server can read. Only bases in the table's own folder, as branches have them, are opened or
committed.
"""

from collections.abc import Iterable

from penstock.errors import InvalidRequest, InvalidTableState
from penstock.lance.doors import lance
from penstock.lance.storage.lake import normalise_root
from penstock.model.locations import is_within


def find_foreign(location: str, bases: Iterable[str]) -> str | None:
    """The first base that is outside a table's folder, however it is spelt."""
    return next((base for base in bases if not _is_own(location, base)), None)


def check_opened(dataset: "lance.LanceDataset", location: str) -> "lance.LanceDataset":
    """The dataset; raises if it reads from anywhere but its table's folder."""
    bases = dataset.base_paths()
    if bases and (found := find_foreign(location, (base.path for base in bases.values()))):
        raise InvalidTableState(
            f"the table at {location} refers to files at {found!r}, outside its folder",
            detail="copy the table with its files, as deep_clone does, instead of by reference",
        )
    return dataset


def _is_own(location: str, base: str) -> bool:
    try:
        return is_within(normalise_root(base), normalise_root(location))
    except InvalidRequest:
        return False
