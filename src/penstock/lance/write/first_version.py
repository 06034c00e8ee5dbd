"""A table's first version: written, then committed; of one that is refused nothing is left."""

import re
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import Unavailable
from penstock.lance.errors import translated
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write import rows
from penstock.lance.write.uploads import FOLDER, Written

if TYPE_CHECKING:
    from penstock.lance.session.bridge import Bridge

FOLDERS = ("data", "_transactions", "_versions", "")
# What is left of a first version whose server died before it was recorded; no table has it.
_LEFT = re.compile(
    r"data/[^/]+\.lance|_transactions/[^/]+\.txn|_versions/[^/]+\.manifest-[^/]+|"
    + re.escape(FOLDER)
    + "/.+"
)


def is_occupied(place: Place) -> bool:
    """Whether there are files at a location that a first version did not leave there. Blocks."""
    return any(_LEFT.fullmatch(path) is None for path in files.walk(place))


def commit(
    place: Place,
    write: Callable[[], Written],
    bridge: "Bridge",
    table_id: list[str],
    options: dict[str, str],
    *,
    is_alone: bool,
) -> int:
    """Write and commit it; alone, nobody else can be writing into the folder. Blocks."""
    transaction = str(uuid.uuid4())
    written: Written | None = None
    try:
        with translated(bridge):
            written = write()
            dataset = rows.commit_overwrite(
                place.location, written, bridge, table_id, options, transaction
            )
    except BaseException:
        # When the database failed, the commit may have happened, and its files are a table's.
        if isinstance(bridge.refusal, Unavailable):
            raise
        if is_alone:
            files.remove_all(place)
        else:
            _remove_own(place, written, transaction, bridge.staged_path)
        raise
    return dataset.version


def _remove_own(place: Place, written: Written | None, transaction: str, staged: str) -> None:
    """Remove what this commit brought, and nothing of whoever was first."""
    if written is not None:
        for fragment in written.fragments:
            for file in fragment.files:
                files.remove(place, f"data/{file.path}")
    files.remove(place, f"_transactions/0-{transaction}.txn")
    if staged:
        files.remove(place, files.relative_path(place, staged))
    for folder in FOLDERS:
        files.remove_if_empty(place, folder)
