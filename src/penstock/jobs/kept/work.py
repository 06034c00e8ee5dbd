"""Finished work that outlives its job: where it lies, where it comes from, which of it still holds.

A value belongs to a row and to the inputs that it was computed from, whatever file the row is in
now and whichever job computed it. So what workers finish lies in a folder that belongs to a column
(or whatever else is filled) and one version of its function. Each piece of it names its origin: who
computed it, and the version that its inputs were read from; by that and by row id it is found
again. All of it blocks.
"""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from penstock.errors import DamagedFile, InvalidRequest, InvalidTableState, NotFound
from penstock.jobs.backfill.watermarks import folder_of
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.row_diff import Rows, find_changed
from penstock.lance.session.remote import Location, open_version

if TYPE_CHECKING:
    from lance import LanceDataset

    from penstock.lance.diff.masks import Mask

PREFIX, COLUMN = "kept-", "column-"
MAKER_CHARACTERS = 16
# What nobody has added to or used for so long is of no use to anybody.
KEPT_SECONDS = 7 * 24 * 3600


class Origin(Struct, frozen=True):
    """Who computed something, and from which version of the table."""

    job: str
    attempt: int
    version: int
    # Tells the version from another of the same number; '' when that is not known.
    transaction: str = ""


def name_folder(owner: str, maker: str) -> str:
    """The folder, among those of jobs, of what one version of a function made for an owner."""
    made_by = hashlib.sha256(maker.encode()).hexdigest()[:MAKER_CHARACTERS]
    return f"{PREFIX}{owner}-{made_by}"


def owner_of_column(binding: str, branch: str) -> str:
    """What a column on a branch is called as an owner."""
    return f"{COLUMN}{folder_of(binding, branch)}"


def owner_of(folder: str) -> str | None:
    """Whose work a folder among those of jobs keeps; None when it is a job's."""
    return folder[len(PREFIX) :].rpartition("-")[0] if folder.startswith(PREFIX) else None


def open_origin(location: Location, origin: Origin, reader: str) -> "LanceDataset | None":
    """The version that something was computed from; None when it is gone."""
    try:
        found = open_version(location, origin.version, reader)
        if origin.transaction in ("", transaction_of(found)):
            return found
    except (DamagedFile, NotFound, InvalidRequest, InvalidTableState):
        pass
    return None


def find_same(
    now: "LanceDataset", then: "LanceDataset", inputs: Sequence[str], new: Rows, old: Rows
) -> "Mask":
    """Which rows have the inputs that they had then; both are the same rows, sorted by their ids.

    Rows that only a compaction moved are not read.
    """
    try:
        return ~find_changed(now, then, inputs, new, old)
    except (DamagedFile, NotFound, InvalidRequest, InvalidTableState):
        # An input was not there yet, or a file of then is gone: nothing is known.
        return np.zeros(len(new.ids), bool)
