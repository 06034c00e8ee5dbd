"""A table's first version: write it, then commit it; a refused one leaves nothing behind."""

import re
import uuid
from collections.abc import Callable

from penstock.errors import Unavailable
from penstock.lance import doors
from penstock.lance.errors import translated
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write import row_changes
from penstock.lance.write.uploads import FOLDER, WrittenFragments

FOLDERS = ("data", "_transactions", "_versions", "")
# Leftovers of a first version whose server died before it was recorded; no table has such files.
_LEFT = re.compile(
    r"data/[^/]+\.lance|_transactions/[^/]+\.txn|_versions/[^/]+\.manifest-[^/]+|"
    + re.escape(FOLDER)
    + "/.+"
)


def is_occupied(place: Place) -> bool:
    """Whether a location has files other than leftovers of a first version. Blocks."""
    return any(_LEFT.fullmatch(path) is None for path in files.walk(place))


def commit(
    place: Place,
    write: Callable[[], WrittenFragments],
    bridge: "doors.bridge.Bridge",
    table_id: list[str],
    options: dict[str, str],
    *,
    is_alone: bool,
) -> int:
    """Write and commit it; `alone` when nobody else can be writing to the folder. Blocks."""
    transaction = str(uuid.uuid4())
    written: WrittenFragments | None = None
    try:
        with translated(bridge):
            written = write()
            dataset = row_changes.commit_overwrite(
                place.location, written, bridge, table_id, options, transaction
            )
    except BaseException:
        # When the database failed, the commit may have happened, and its files may be a table's.
        if isinstance(bridge.refusal, Unavailable):
            raise
        if is_alone:
            files.remove_all(place)
        else:
            _remove_own(place, written, transaction, bridge.staged_path)
        raise
    return dataset.version


def _remove_own(
    place: Place, written: WrittenFragments | None, transaction: str, staged: str
) -> None:
    """Remove the files of this commit, and none of whoever was first."""
    if written is not None:
        for fragment in written.fragments:
            for file in fragment.files:
                files.remove(place, f"data/{file.path}")
    files.remove(place, f"_transactions/0-{transaction}.txn")
    if staged:
        files.remove(place, files.relative_path(place, staged))
    for folder in FOLDERS:
        files.remove_if_empty(place, folder)
